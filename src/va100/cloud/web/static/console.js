// Livelier pages: parts that are drawn anew, and questions before what cannot be undone.
"use strict";

for (const part of document.querySelectorAll("[data-refresh]")) {
  const every = Number(part.dataset.every);
  const again = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(part.dataset.refresh, { credentials: "same-origin" });
        if (answer.ok && !answer.redirected) {
          const text = await answer.text();
          const before = part.querySelector("[data-state]")?.dataset.state;
          const log = part.querySelector(".log");
          const held = log && log.scrollTop + log.clientHeight < log.scrollHeight - 8;
          const place = log?.scrollTop;
          const drawn = new DOMParser().parseFromString(text, "text/html");
          const selected = !window.getSelection().isCollapsed;
          if (!selected && !part.contains(document.activeElement)) {
            part.replaceChildren(...drawn.body.childNodes);
            const after = part.querySelector(".log");
            if (after) after.scrollTop = held ? place : after.scrollHeight;
          }
          const now = part.querySelector("[data-state]")?.dataset.state;
          if (before !== undefined && now !== before) location.reload();
        }
      } catch {
        // The site is away; the next time may be better.
      }
    }
    setTimeout(again, every);
  };
  setTimeout(again, every);
}

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}
