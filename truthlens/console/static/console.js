// Every few seconds the page is read again, and what is marked data-live is replaced; nothing else, so that nothing
// that is being typed is lost.
const EVERY_MS = 2000;
const field = id => document.getElementById(id);

async function refresh() {
  const note = field("connection");
  // Not while nobody looks, or while text is being selected.
  if (document.hidden || !getSelection().isCollapsed) return;
  try {
    const reply = await fetch(location.href, { headers: { accept: "text/html" } });
    if (reply.status === 401) {
      note.textContent = "you are logged out: load the page again";
      note.className = "bad";
    }
    if (!reply.ok) return;
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    const focused = document.activeElement && document.activeElement.id;
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (now && now.innerHTML !== old.innerHTML) old.replaceWith(document.importNode(now, true));
    }
    if (focused && document.activeElement.id !== focused && field(focused)) field(focused).focus({ preventScroll: true });
    note.textContent = "live";
    note.className = "good";
  } catch {
    note.textContent = "no answer from this process: the page shows what was";
    note.className = "bad";
  }
}

async function score(event) {
  event.preventDefault();
  const response = field("response").value, out = field("verdict");
  const line = document.createElement("p");
  out.replaceChildren(line);
  let reply, verdict;
  try {
    reply = await fetch("/v1/detect", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        context: [field("context").value], query: field("query").value, response, decision: field("decision").value,
      }),
    });
    verdict = await reply.json();
  } catch {
    line.textContent = "no answer from this process";
    return;
  }
  line.textContent = !reply.ok ? verdict.error.message
    : verdict.score == null ? `${verdict.status}: ${verdict.reason}`
    : `${verdict.status} · score ${verdict.score.toFixed(2)} · threshold ${verdict.threshold} · ` +
      (verdict.detected ? "detected" : "not detected");
  if (!reply.ok) return;
  // Offsets count characters (code points), as in every other place of the API.
  const characters = Array.from(response), text = document.createElement("p");
  let at = 0;
  for (const span of verdict.spans) {
    text.append(characters.slice(at, span.start).join(""));
    const mark = document.createElement("mark");
    mark.textContent = characters.slice(Math.max(at, span.start), span.end).join("");
    mark.title = `score ${span.score.toFixed(2)}`;
    text.append(mark);
    at = Math.max(at, span.end);
  }
  text.append(characters.slice(at).join(""));
  out.append(text);
}

if (document.querySelector("[data-live]")) setInterval(refresh, EVERY_MS);
const form = field("form");
if (form) {
  form.hidden = false;
  form.addEventListener("submit", score);
}
