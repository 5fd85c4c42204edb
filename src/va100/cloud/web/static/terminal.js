// A terminal inside an instance, over the API's terminal calls.
"use strict";

const box = document.getElementById("terminal");
const said = document.getElementById("terminal-state");
const screen = new Terminal({ cols: 100, rows: 30, screenReaderMode: true });
const base = `/v1/instances/${box.dataset.instance}/terminals`;
const headers = { "Content-Type": "application/json", "X-CSRF-Token": box.dataset.csrf };
const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

screen.open(box);
screen.focus();

const ask = async (path, body) => {
  const options = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(base + path, { credentials: "same-origin", ...options });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text ? JSON.parse(text).detail : answer.statusText);
  return text ? JSON.parse(text) : null;
};

const live = async () => {
  const { terminal } = await ask("", { columns: screen.cols, rows: screen.rows });
  let typed = "";
  let sending = false;
  const send = async () => {
    if (sending) return;
    sending = true;
    while (typed) {
      const keys = typed;
      typed = "";
      try {
        await ask(`/${terminal}`, { data: encode(keys) });
      } catch {
        typed = keys + typed; // it has not begun yet
        await new Promise((resume) => setTimeout(resume, 100));
      }
    }
    sending = false;
  };
  screen.onData((keys) => {
    typed += keys;
    send();
  });
  let offset = 0;
  for (;;) {
    const piece = await ask(`/${terminal}?offset=${offset}`);
    if (piece.next !== offset) {
      screen.write(Uint8Array.from(atob(piece.data), (c) => c.charCodeAt(0)));
    } else {
      await new Promise((resume) => setTimeout(resume, 100));
    }
    offset = piece.next;
    if (piece.ended) break;
  }
  said.textContent = "The shell has ended.";
};

live().catch((error) => {
  said.textContent = error.message;
});
