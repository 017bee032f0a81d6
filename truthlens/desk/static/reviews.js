// Keys, and marks by selection, for the review queue (reviews.html.j2, review.html.j2). Every action is a button or a link of the page,
// so that all of it works without this file.
"use strict";
{
  const one = selector => document.querySelector(selector);
  const all = selector => Array.from(document.querySelectorAll(selector));
  const KEYS_OFF = "truthlens.reviews.keys-off";
  const kept = {
    get off() { try { return localStorage.getItem(KEYS_OFF) === "1"; } catch { return false; } },
    set off(value) { try { if (value) localStorage.setItem(KEYS_OFF, "1"); else localStorage.removeItem(KEYS_OFF); } catch { /* not kept */ } },
  };

  // --- decisions ------------------------------------------------------------------------------------------------------------------

  // After a decision the next entry comes up by itself: a key or a click that was meant for the one before must not decide about it.
  const REST_MS = 300, state = document.documentElement.dataset;
  let resting = 0;
  function rest() {
    delete state.rested;
    clearTimeout(resting);
    resting = setTimeout(() => { state.rested = ""; }, REST_MS);
  }
  addEventListener("pageshow", rest);
  document.addEventListener("submit", event => {
    if (event.target.method !== "post") return;
    // What was sent once is not sent again: the page goes as soon as the answer is here.
    if (!("rested" in state)) event.preventDefault();
    else { delete state.rested; clearTimeout(resting); }
  }, true);

  // --- the list -------------------------------------------------------------------------------------------------------------------

  const links = () => all("[data-open]");
  const place = () => links().findIndex(link => link.closest("tr").contains(document.activeElement));
  function step(by) {
    const rows = links(), at = place();
    const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
    if (row) { row.focus(); row.closest("tr").scrollIntoView({ block: "nearest" }); }
  }
  function tick() {
    const row = links()[place()];
    const box = row && row.closest("tr").querySelector("input[name=pick]");
    if (box) { box.checked = !box.checked; count(); }
  }
  function count() {
    const told = one("[data-ticked]"), ticked = all("input[name=pick]:checked").length;
    if (!told) return 0;
    told.textContent = `${ticked} ticked:`;
    for (const button of all(".bulk button")) button.disabled = !ticked;
    return ticked;
  }
  document.addEventListener("change", event => { if (event.target.matches("input[name=pick]")) count(); });
  // A browser may keep ticks of a page that it shows again.
  addEventListener("pageshow", count);

  // --- marks ----------------------------------------------------------------------------------------------------------------------

  const form = one("[data-entry]");
  const answers = new Map();

  // Positions in an answer count characters (code points) of its text; what is shown may be longer or shorter where it has hidden ones.
  class Answer {
    constructor(holder) {
      this.node = holder.querySelector(".annotated-answer > .answer");
      this.shifts = JSON.parse(holder.dataset.shifts);
    }
    shown(position) {
      let by = 0;
      for (const [at, length, shown] of this.shifts) {
        if (at >= position) break;
        by += at + length > position ? 0 : shown - length;
      }
      return position + by;
    }
    position(shown, end) {
      let by = 0;
      for (const [at, length, size] of this.shifts) {
        const from = at + by;
        if (from >= shown) break;
        // Within what stands for a hidden character: all of it.
        if (from + size > shown) return end ? at + length : at;
        by += size - length;
      }
      return shown - by;
    }
    // Where a boundary of a selection is, in characters that are shown.
    at(container, offset) {
      const before = document.createRange();
      before.selectNodeContents(this.node);
      before.setEnd(container, offset);
      return Array.from(before.toString()).length;
    }
    nodes() {
      if (this.texts) return this.texts;
      this.texts = [];
      const walker = document.createTreeWalker(this.node, NodeFilter.SHOW_TEXT);
      let start = 0;
      while (walker.nextNode()) {
        const length = Array.from(walker.currentNode.data).length;
        this.texts.push({ node: walker.currentNode, start, length });
        start += length;
      }
      return this.texts;
    }
    range(start, end) {
      const range = document.createRange(), texts = this.nodes();
      const set = (position, last) => {
        let low = 0, high = texts.length - 1;
        while (low < high) {
          const middle = (low + high) >> 1, text = texts[middle];
          if (text.start + text.length < position + (last ? 0 : 1)) low = middle + 1; else high = middle;
        }
        const { node, start: first, length } = texts[low];
        const within = Math.min(Math.max(0, position - first), length);
        const offset = node.data.length === length ? within : Array.from(node.data).slice(0, within).join("").length;
        if (last) range.setEnd(node, offset); else range.setStart(node, offset);
      };
      if (!texts.length) return null;
      set(this.shown(start), false);
      set(this.shown(end), true);
      return range;
    }
  }

  const several = form && "several" in form.dataset;
  const lines = form && form.elements.spans;
  const LINE = /^(?:(\d+)\s*:\s*)?(\d+)\s*[-–]\s*(\d+)$/;

  function marks() {
    return lines.value.split("\n").map(line => LINE.exec(line.trim())).filter(Boolean)
      .map(([, choice, start, end]) => ({ choice: Number(choice || 0), start: Number(start), end: Number(end) }));
  }
  function write(found) {
    const sorted = found.sort((a, b) => a.choice - b.choice || a.start - b.start || a.end - b.end), joined = [];
    for (const mark of sorted) {
      const last = joined[joined.length - 1];
      if (last && last.choice === mark.choice && mark.start <= last.end) last.end = Math.max(last.end, mark.end);
      else joined.push({ ...mark });
    }
    lines.value = joined.map(mark => `${several ? `${mark.choice}:` : ""}${mark.start}-${mark.end}`).join("\n");
    form.elements.marks.value = "own";
    show();
  }
  function show() {
    const own = form.elements.marks.value === "own", list = one("[data-marks]"), found = own ? marks() : [];
    for (const holder of all("[data-choice]")) holder.classList.toggle("own-marks", own);
    const ranges = [];
    list.replaceChildren();
    for (const [number, mark] of found.entries()) {
      const range = answers.get(mark.choice)?.range(mark.start, mark.end);
      if (range) ranges.push(range);
      if (number >= 200) continue;
      const item = document.createElement("li"), quote = document.createElement("q"), remove = document.createElement("button");
      const text = range ? range.toString() : `${mark.start}–${mark.end}`;
      quote.textContent = text.length > 300 ? `${text.slice(0, 300)}…` : text;
      quote.dir = "auto";
      remove.type = "button";
      remove.className = "quiet";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove the mark “${text.slice(0, 60)}”`);
      remove.addEventListener("click", () => {
        write(marks().filter((_, at) => at !== number));
        (list.querySelector("button") || one("[data-mark]")).focus();
        tell("The mark is removed.");
      });
      item.append(quote, remove);
      list.append(item);
    }
    if (found.length > 200) list.append(Object.assign(document.createElement("li"), { textContent: `and ${found.length - 200} more` }));
    if (own && !found.length) list.append(Object.assign(document.createElement("li"), { className: "soft", textContent: "Nothing is marked." }));
    if (globalThis.Highlight && CSS.highlights) CSS.highlights.set("own-marks", new Highlight(...ranges));
  }
  function tell(text) { one("[data-mark-told]").textContent = text; }

  // The last selection within an answer: pressing a button may take the selection away.
  let chosen = null;
  function selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    for (const [choice, answer] of answers) {
      if (!answer.node.contains(range.startContainer) || !answer.node.contains(range.endContainer)) continue;
      const start = answer.position(answer.at(range.startContainer, range.startOffset), false);
      const end = answer.position(answer.at(range.endContainer, range.endOffset), true);
      return start < end ? { choice, start, end } : null;
    }
    return null;
  }
  function mark() {
    const found = selected() || chosen;
    if (!found) { tell("Select text in the answer first."); return; }
    const range = answers.get(found.choice).range(found.start, found.end), before = marks();
    // What is selected within a mark narrows it: the rest of it was not meant.
    const kept = before.filter(each => each.choice !== found.choice || each.start > found.start || each.end < found.end);
    write([...kept, found]);
    chosen = null;
    getSelection().removeAllRanges();
    tell(`${kept.length < before.length ? "Narrowed to" : "Marked"}: “${range.toString().slice(0, 80)}”. Press Reject or Save to keep it.`);
  }

  // Selecting by keyboard in text that cannot be edited: words by arrow keys, more with Shift.
  function select(event, answer) {
    const forward = event.key === "ArrowRight";
    const selection = getSelection(), unit = event.altKey ? "character" : "word";
    const inside = selection.rangeCount && answer.node.contains(selection.anchorNode);
    const old = inside ? selection.getRangeAt(0).cloneRange() : null;
    if (!inside) selection.collapse(answer.node, forward ? 0 : answer.node.childNodes.length);
    if (event.shiftKey && old) selection.modify("extend", forward ? "forward" : "backward", unit);
    else {
      if (old && !selection.isCollapsed) forward ? selection.collapseToEnd() : selection.collapseToStart();
      if (forward) {
        selection.modify("move", "forward", unit);
        selection.modify("move", "backward", unit);
        selection.modify("extend", "forward", unit);
      } else {
        selection.modify("move", "backward", unit);
        selection.modify("extend", "forward", unit);
      }
    }
    const now = selection.rangeCount ? selection.getRangeAt(0) : null;
    if (!now || !answer.node.contains(now.startContainer) || !answer.node.contains(now.endContainer)) {
      selection.removeAllRanges();
      if (old) selection.addRange(old);
    }
    event.preventDefault();
  }

  if (form) {
    for (const holder of all("[data-choice][data-shifts]")) {
      const answer = new Answer(holder);
      if (!answer.node) continue;
      answers.set(Number(holder.dataset.choice), answer);
      answer.node.tabIndex = 0;
      answer.node.setAttribute("role", "group");
      answer.node.setAttribute("aria-label", "Answer. Arrow keys select words, with Shift more of them; m marks what is selected.");
      answer.node.addEventListener("keydown", event => {
        if (event.target === answer.node && (event.key === "ArrowRight" || event.key === "ArrowLeft") && !event.ctrlKey && !event.metaKey) select(event, answer);
      });
    }
    if (answers.size) {
      one("[data-marker]").hidden = false;
      one("[data-mark]").addEventListener("click", mark);
      document.addEventListener("selectionchange", () => {
        const found = selected();
        if (!found) return;
        chosen = found;
        tell("Press “Mark as unsupported”, or m.");
      });
    }
    form.addEventListener("change", event => { if (event.target.name === "marks" || event.target === lines) show(); });
    addEventListener("pageshow", show);
    show();
    // A note or marks that were not sent are not left behind without a word.
    const written = () => JSON.stringify(["note", "marks", "spans"].map(name => form.elements[name].value));
    const before = written();
    let sending = false;
    form.addEventListener("submit", event => { sending = !event.defaultPrevented; });
    addEventListener("pageshow", () => { sending = false; });
    addEventListener("beforeunload", event => {
      if (!sending && ("unsaved" in form.dataset || written() !== before)) event.preventDefault();
    });
  }
  one("[data-focus]")?.focus();

  // --- keys -----------------------------------------------------------------------------------------------------------------------

  const help = one("#help"), on = one("#keys-on");
  if (on) {
    on.checked = !kept.off;
    const hint = () => { for (const line of all("[data-hints]")) line.hidden = kept.off; };
    on.addEventListener("change", () => { kept.off = !on.checked; hint(); });
    hint();
  }
  const typing = element => element.matches("textarea, select, input:not([type=checkbox], [type=radio])") || element.isContentEditable;

  document.addEventListener("keydown", event => {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.key === "Escape") {
      if (typing(target)) target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && !"jk".includes(event.key)) return;
    if (typing(target) || !help || help.open) return;
    // The help is where the keys are switched on again.
    if (event.key === "?") { help.showModal(); event.preventDefault(); return; }
    if (kept.off) return;
    const by = { j: 1, k: -1 }[event.key];
    if (by && links().length) step(by);
    else if (by) one(by > 0 ? "main [rel=next]" : "main [rel=prev]")?.click();
    else if (event.key === "x") tick();
    else if (event.key === "n" && form) form.elements.note.focus();
    else {
      const button = "arum".includes(event.key) && one(`button[data-key="${event.key}"]`);
      if (!button) return;
      if (button.disabled) { const told = one("[data-ticked]"); if (told) told.textContent = "Tick entries first (x):"; }
      else button.click();
    }
    event.preventDefault();
  });
}
