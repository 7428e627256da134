// Fetching: one round at a time, at most one every EVERY_MS, and another after it where something changed meanwhile.
// Whoever scrolls is not disturbed: a round waits until nothing has been scrolled for STILL_MS, but never longer than PATIENCE_MS.
const EVERY_MS = 400;
const STILL_MS = 150;
const PATIENCE_MS = 1000;
let scrolledAt = -Infinity;
addEventListener("scroll", () => { scrolledAt = performance.now(); }, { capture: true, passive: true });

export class Refresh {
  constructor(round) {
    this.round = round;
    this.running = false;
    this.again = false;
    this.began = 0;
    this.askedAt = 0;
  }

  soon() {
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    this.askedAt = performance.now();
    setTimeout(() => this.whenStill(), Math.max(0, this.began + EVERY_MS - this.askedAt));
  }

  whenStill() {
    const now = performance.now();
    if (now - scrolledAt < STILL_MS && now - this.askedAt < PATIENCE_MS) setTimeout(() => this.whenStill(), 50);
    else this.run();
  }

  async run() {
    this.began = performance.now();
    this.again = false;
    try {
      await this.round();
    } finally {
      this.running = false;
      if (this.again) this.soon();
    }
  }
}
