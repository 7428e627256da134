// A table of any length: only the rows in sight are in the page, and they are used again as it scrolls.
import { el } from "./dom.js";

const ROW = 28;
const OVER = 6;
const LEAST_HEIGHT = 120;

export class VirtualTable {
  // columns: [{ name, width, number, sort: (row) => key, make: () => node, show: (node, row) => void }]
  constructor(label, columns, { open, empty, height, sortBy = 0, down = true }) {
    this.columns = columns;
    this.open = open;
    this.height = height;
    this.sortBy = sortBy;
    this.down = down;
    this.rows = [];
    this.shown = [];
    this.filter = null;
    this.active = -1;
    this.id = `vt${VirtualTable.count++}`;
    this.slots = [];
    this.body = el("div", { class: "vt-body", role: "rowgroup" });
    this.head = el("div", { class: "vt-head", role: "row", "aria-rowindex": 1 }, columns.map((column, i) => this.headCell(column, i)));
    this.nothing = el("p", { class: "nothing", hidden: true }, empty);
    this.node = el("div", { class: "vt", role: "grid", tabindex: 0, "aria-label": label }, el("div", { role: "rowgroup" }, this.head), this.body, this.nothing);
    const template = columns.map((column) => column.width).join(" ");
    this.template = template;
    this.head.style.gridTemplateColumns = template;
    const least = columns.reduce((sum, column) => sum + (column.least ?? 60), 0);
    this.head.style.minWidth = this.body.style.minWidth = `${least}px`;
    this.node.addEventListener("scroll", () => this.soon(), { passive: true });
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.soon()).observe(this.node);
  }

  headCell(column, i) {
    const button = el("button", { type: "button", tabindex: -1, onclick: () => this.sort(i) }, column.name);
    return el("div", { role: "columnheader", class: column.number ? "number" : null }, button);
  }

  sort(i) {
    if (this.sortBy === i) this.down = !this.down;
    else [this.sortBy, this.down] = [i, Boolean(this.columns[i].number)];
    this.arrange();
  }

  take(rows) {
    this.rows = rows;
    this.arrange();
  }

  where(filter) {
    this.filter = filter;
    this.node.scrollTop = 0;
    this.arrange();
  }

  arrange() {
    const key = this.columns[this.sortBy].sort;
    const sign = this.down ? -1 : 1;
    const kept = this.filter ? this.rows.filter(this.filter) : [...this.rows];
    const keys = new Map(kept.map((row) => [row, key(row)]));
    kept.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || compare(a.key, b.key));
    const activeKey = this.shown[this.active]?.key;
    this.shown = kept;
    this.active = activeKey === undefined ? -1 : kept.findIndex((row) => row.key === activeKey);
    [...this.head.children].forEach((cell, i) => {
      const sorted = i === this.sortBy;
      cell.setAttribute("aria-sort", sorted ? (this.down ? "descending" : "ascending") : "none");
      cell.firstChild.textContent = this.columns[i].name + (sorted ? (this.down ? " ↓" : " ↑") : "");
    });
    this.node.setAttribute("aria-rowcount", kept.length + 1);
    this.nothing.hidden = kept.length > 0;
    this.body.style.height = `${kept.length * ROW}px`;
    this.node.style.height = `${Math.min(this.height, Math.max(LEAST_HEIGHT, (kept.length + 1) * ROW + 6))}px`;
    for (const slot of this.slots) slot.index = -1;
    this.draw();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const height = this.node.clientHeight || 400;
    const count = Math.ceil(height / ROW) + 2 * OVER;
    while (this.slots.length < count) this.slots.push(this.makeSlot());
    const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - OVER);
    const many = this.slots.length;
    for (let i = first; i < first + many; i++) {
      const slot = this.slots[i % many];
      if (slot.index === i) continue;
      slot.index = i;
      this.fill(slot, i);
    }
    this.mark();
  }

  makeSlot() {
    const cells = this.columns.map((column) => {
      const cell = el("span", { role: "gridcell", class: column.number ? "number" : null });
      if (column.make) cell.append(column.make());
      return cell;
    });
    const node = el("div", { class: "vt-row", role: "row", id: `${this.id}-${this.slots.length}`, style: { gridTemplateColumns: this.template } }, cells);
    this.body.append(node);
    return { node, cells, index: -1 };
  }

  fill(slot, i) {
    const row = this.shown[i];
    slot.node.hidden = row === undefined;
    if (row === undefined) return;
    slot.node.style.top = `${i * ROW}px`;
    slot.node.setAttribute("aria-rowindex", i + 2);
    this.columns.forEach((column, at) => column.show(slot.cells[at], row));
  }

  mark() {
    let on = null;
    for (const slot of this.slots) {
      const selected = slot.index === this.active && !slot.node.hidden;
      if ((slot.node.getAttribute("aria-selected") === "true") !== selected) slot.node.setAttribute("aria-selected", String(selected));
      if (selected) on = slot.node.id;
    }
    if (on) this.node.setAttribute("aria-activedescendant", on);
    else this.node.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.target !== this.node) return;
    const page = Math.max(1, Math.floor((this.node.clientHeight - ROW) / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.go(Math.min(this.shown.length - 1, Math.max(0, this.active + steps[event.key])));
    } else if ((event.key === "Enter" || event.key === " ") && this.shown[this.active]) {
      event.preventDefault();
      this.open(this.shown[this.active]);
    } else if (/^[1-9]$/.test(event.key) && this.columns[event.key - 1]) {
      this.sort(event.key - 1);
      event.stopPropagation();
    }
  }

  go(i) {
    this.active = i;
    const top = i * ROW;
    const height = this.node.clientHeight - this.head.offsetHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW > this.node.scrollTop + height) this.node.scrollTop = top + ROW - height;
    this.draw();
  }

  click(event) {
    const node = event.target.closest(".vt-row");
    const slot = this.slots.find((each) => each.node === node);
    if (!slot || !this.shown[slot.index]) return;
    this.active = slot.index;
    this.mark();
    this.open(this.shown[slot.index]);
  }
}
VirtualTable.count = 0;

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : 1;
}

export const text = (of) => (cell, row) => {
  const said = of(row);
  cell.textContent = said;
  cell.title = said;
};

// A bar with its number: how much of the whole.
export const bar = {
  make: () => el("span", { class: "bar" }, el("u", {}, el("i")), el("b")),
  show: (share, said, standing) => (cell, row) => {
    const box = cell.firstChild;
    const part = share(row);
    box.dataset.standing = standing ? standing(row) : "";
    box.firstChild.firstChild.style.width = `${part === null ? 0 : 100 * Math.min(1, part)}%`;
    box.lastChild.textContent = said(row);
  },
};
