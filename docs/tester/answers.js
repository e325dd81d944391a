// Asks Python in a worker. Takes the place of the script that asks a server.

export const isLocal = true;
export const note = "Python runs in your browser: it loads 14 MB on first use, and nothing you type leaves this page.";

let worker;
let asked = { id: 0 };

export function answer(query, { tell }) {
  if (!worker) {
    worker = start();
    tell("Loading Python …");
  }
  return new Promise((resolve, reject) => {
    asked = { id: asked.id + 1, resolve, reject, tell };
    worker.postMessage({ id: asked.id, query });
  });
}

// A worker from a blob obeys the Content-Security-Policy of the page; one from a file
// would have none.
function start() {
  const script = `import ${JSON.stringify(new URL("worker.js", import.meta.url))};`;
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const started = new Worker(url, { type: "module" });
  started.onmessage = ({ data }) => {
    if (data.progress) asked.tell(data.progress);
    if (data.failure) fail(data.failure);
    if (data.id === asked.id) asked.resolve(data.content);
  };
  started.onerror = (event) => fail(event.message ?? "its files could not be loaded");
  return started;
}

function fail(reason) {
  worker?.terminate();
  worker = undefined;
  asked.reject(new Error(`Python failed: ${reason}`));
}
