// The playground: scores without leaving the page, tries thresholds, and puts the texts into a link. The form works without it.
"use strict";
{
  const field = id => document.getElementById(id);
  const form = field("playground"), NAMES = ["context", "query", "response", "body", "decision"];
  const MARK = "#p1=", LONGEST_LINK = 32000, LONGEST_TEXTS = 2_000_000;

  function problem(text) {
    const section = document.createElement("section"), line = document.createElement("p");
    section.setAttribute("role", "alert");
    line.className = "bad";
    line.textContent = text;
    section.append(line);
    field("result").replaceChildren(section);
  }

  const say = (text, tone) => { field("shared").textContent = text; field("shared").className = tone; };

  form.addEventListener("submit", async event => {
    event.preventDefault();
    // The button is not disabled meanwhile: it would lose the focus.
    if (form.hasAttribute("aria-busy")) return;
    form.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const text = await reply.text();
      const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("result");
      if (fresh) {
        for (const list of fresh.querySelectorAll("[data-findings]")) list.open = false;
        field("result").replaceWith(document.importNode(fresh, true));
        ready();
        say("The result is below.", "good");
        field("result").scrollIntoView({ block: "start" });
      } else {
        let why = `The console answered with status ${reply.status}.`;
        try { why = JSON.parse(text).error.message; } catch { /* no JSON: the status has to do */ }
        problem(why);
      }
    } catch {
      problem("No answer from this process.");
    } finally {
      form.removeAttribute("aria-busy");
    }
  });

  // A probability at even odds, at another rate of unsupported answers.
  const atRate = (score, rate) => score * rate / (score * rate + (1 - score) * (1 - rate));

  function told(flagged) { return flagged ? "flagged" : "not flagged"; }

  let due = 0, spans = null;
  function tryThreshold() {
    due = 0;
    const slider = field("slider");
    if (!slider) return;
    const threshold = Number(field("threshold").value), rate = Number(slider.dataset.rate);
    field("tried").textContent = threshold.toFixed(2);
    const flagged = Number(slider.dataset.score) >= threshold;
    field("tried-verdict").textContent = told(flagged);
    field("tried-verdict").className = flagged ? "bad" : "good";
    spans ??= Array.from(document.querySelectorAll("[data-span][data-score]"), element => ({ element, score: atRate(Number(element.dataset.score), rate) }));
    for (const { element, score } of spans) {
      if (element.dataset.level) {
        // As claim_level of core/risk.py says.
        element.dataset.level = score >= threshold ? "flagged" : Number(element.dataset.score) >= 0.3 ? "doubtful" : "supported";
        continue;
      }
      if (element.classList.contains("over") === score >= threshold) continue;
      element.classList.toggle("over");
      element.classList.toggle("under");
    }
    for (const cell of document.querySelectorAll("td[data-tried][data-score]")) {
      const now = Number(cell.dataset.score) >= threshold, changes = now !== (cell.dataset.flagged === "1");
      cell.querySelector("[data-told]").textContent = told(now) + (changes ? " (changes)" : "");
      cell.className = changes ? "warn" : "soft";
    }
  }

  function ready() {
    spans = null;
    const slider = field("slider");
    if (!slider) return;
    slider.hidden = false;
    for (const each of document.querySelectorAll("[data-tried]")) each.hidden = false;
    tryThreshold();
  }

  document.addEventListener("input", event => {
    if (event.target.id === "threshold") due ||= requestAnimationFrame(tryThreshold);
  });

  // --- links -------------------------------------------------------------------------------------------------------

  async function through(bytes, stream, most) {
    const pieces = [], reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
    for (let size = 0; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      // A short link may hold a long text.
      if (size > most) { reader.cancel(); throw new RangeError("too long"); }
      pieces.push(value);
    }
    return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }

  async function packed(fields) {
    const bytes = await through(new TextEncoder().encode(JSON.stringify(fields)), new CompressionStream("deflate-raw"), Infinity);
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), each => each.charCodeAt(0));
    const plain = await through(bytes, new DecompressionStream("deflate-raw"), LONGEST_TEXTS);
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(plain));
  }

  field("share").addEventListener("click", async () => {
    const fields = Object.fromEntries(NAMES.map(name => [name, form.elements[name].value]));
    const text = await packed(fields);
    field("link").hidden = true;
    if (text.length > LONGEST_LINK) {
      say(`The texts are too long for a link: ${text.length} characters after compression, of at most ${LONGEST_LINK}.`, "bad");
      return;
    }
    history.replaceState(null, "", MARK + text);
    field("url").value = location.href;
    field("link").hidden = false;
    field("url").select();
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied.", "good");
    } catch {
      say("Copy the link below.", "good");
    }
  });

  async function fill() {
    if (!location.hash.startsWith(MARK)) return;
    try {
      const fields = await unpacked(location.hash.slice(MARK.length));
      if (!NAMES.some(name => typeof fields[name] === "string")) throw new TypeError("no texts");
      for (const name of NAMES) {
        const given = fields[name], element = form.elements[name];
        if (typeof given !== "string") continue;
        if (name !== "decision" || Array.from(element.options, each => each.value).includes(given)) element.value = given;
      }
      field("body").closest("details").open = Boolean(fields.body);
      field("result").replaceChildren();
      // Not scored by itself: whoever follows a link should see first what would be sent.
      say("The texts come from the link. Press Score to check the answer.", "good");
    } catch {
      say("The link's texts cannot be read: it is cut short or not one of the playground's.", "bad");
    }
  }

  if ("CompressionStream" in window) {
    field("share").hidden = false;
    addEventListener("hashchange", fill);
    fill();
  }
  ready();
}
