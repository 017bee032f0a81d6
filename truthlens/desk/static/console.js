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
    const text = await reply.text();
    note.textContent = "live";
    note.className = "good";
    // It may have been selected while the answer was on its way.
    if (!getSelection().isCollapsed) return;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const focused = document.activeElement?.id, region = document.activeElement?.closest("[data-live]")?.id;
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (now && now.innerHTML !== old.innerHTML) old.replaceWith(document.importNode(now, true));
    }
    if (focused && document.activeElement.id !== focused) {
      // A list that dropped what had the focus keeps it on its last link.
      const next = field(focused) ?? (region && Array.from(field(region).querySelectorAll("a")).at(-1));
      if (next) next.focus({ preventScroll: true });
    }
  } catch {
    note.textContent = "no answer from this process: the page shows what was";
    note.className = "bad";
  }
}

if (document.querySelector("[data-live]")) setInterval(refresh, EVERY_MS);
