// Fetching: one round at a time, at most one every EVERY_MS, and another after it where something changed meanwhile.
const EVERY_MS = 400;

export class Refresh {
  constructor(round) {
    this.round = round;
    this.running = false;
    this.again = false;
    this.began = 0;
  }

  soon() {
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    const wait = Math.max(0, this.began + EVERY_MS - performance.now());
    setTimeout(() => this.run(), wait);
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
