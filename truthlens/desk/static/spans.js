// Marked spans of an answer and the sentences that they point at (answer_macros.html.j2). One listener for a whole page,
// so that thousands of spans cost nothing, and so that answers that come later need no set-up.
"use strict";
{
  const closest = (event, selector) => event.target instanceof Element ? event.target.closest(selector) : null;
  let active = null, pinned = false;

  // The findings of a span: what is listed of it below, or its score alone.
  function findings(root, id) {
    const list = root.nextElementSibling;
    return list && list.matches("[data-findings]") ? list.querySelector(`[data-finding="${CSS.escape(id)}"]`) : null;
  }

  function light(root, target) {
    const [from, to] = (target.dataset.sentence || "").split("-").map(Number);
    const passage = root.querySelector(`[data-passages] [data-passage="${CSS.escape(target.dataset.passage)}"]`);
    if (!passage) return null;
    if (!target.dataset.sentence) { passage.classList.add("lit"); return passage; }
    let first = null;
    for (const piece of passage.querySelectorAll("[data-sentence]")) {
      const at = Number(piece.dataset.sentence);
      if (at < from || at >= to) continue;
      piece.classList.add("lit");
      first ??= piece;
    }
    return first;
  }

  function clear() {
    if (!active) return;
    const root = active.closest("[data-annotated]");
    active.classList.remove("active");
    active = null;
    pinned = false;
    if (!root) return;
    for (const each of root.querySelectorAll(".lit")) each.classList.remove("lit");
    root.querySelector("[data-card]").hidden = true;
  }

  function show(span) {
    if (span === active) return;
    clear();
    active = span;
    span.classList.add("active");
    const root = span.closest("[data-annotated]"), card = root.querySelector("[data-card]");
    const listed = findings(root, span.dataset.span);
    const body = card.querySelector("[data-card-body]");
    if (listed) body.replaceChildren(...Array.from(listed.children, each => each.cloneNode(true)));
    else {
      const line = document.createElement("p");
      line.textContent = span.title || `Span score ${Number(span.dataset.score).toFixed(2)}`;
      body.replaceChildren(line);
    }
    card.hidden = false;
    const targets = [span, ...(listed ? listed.querySelectorAll("[data-passage]") : [])].filter(each => each.dataset.passage);
    const places = targets.map(each => light(root, each)).filter(Boolean);
    if (places.length) {
      // Only the evidence scrolls: the page stays where the reader is.
      const box = root.querySelector("[data-passages]"), at = places[0].getBoundingClientRect(), frame = box.getBoundingClientRect();
      if (at.top < frame.top || at.bottom > frame.bottom) box.scrollTop += at.top - frame.top - box.clientHeight / 3;
    }
  }

  document.addEventListener("pointerover", event => {
    const span = closest(event, "[data-span]");
    if (span && !pinned && event.pointerType !== "touch") show(span);
  });
  document.addEventListener("focusin", event => {
    const span = closest(event, "[data-span]");
    if (span) show(span);
  });
  document.addEventListener("click", event => {
    const span = closest(event, "[data-span]");
    if (span) {
      // The link is for pages without script.
      event.preventDefault();
      show(span);
      pinned = true;
    } else if (closest(event, "[data-close]")) clear();
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") { clear(); return; }
    const span = closest(event, "[data-span]");
    if (!span) return;
    if (event.key === " ") { event.preventDefault(); show(span); pinned = true; return; }
    const step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
    if (step && span[step]) { event.preventDefault(); span[step].focus(); }
  });
  for (const list of document.querySelectorAll("[data-findings]")) list.open = false;
}
