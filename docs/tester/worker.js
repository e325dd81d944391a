// Runs Python and robotsgate, so that the page stays responsive.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const TOTAL_BYTES = 12.7e6; // of all files but the scripts, which are imported

const python = start();
let wanted;

onmessage = async ({ data }) => {
  wanted = data;
  try {
    const answer = await python;
    setTimeout(() => answerLatest(answer)); // after the queries that have come meanwhile
  } catch (error) {
    postMessage({ failure: error.message });
  }
};

function answerLatest(answer) {
  if (!wanted) return;
  const { id, query } = wanted;
  wanted = undefined;
  postMessage({ id, content: JSON.parse(answer(JSON.stringify(query))) });
}

async function start() {
  watchLoading();
  const [pyodide, modules] = await Promise.all([
    loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href }),
    fetch(new URL("modules.zip", import.meta.url)).then((response) => response.arrayBuffer()),
  ]);
  pyodide.unpackArchive(modules, "zip");
  return pyodide.pyimport("answers").answer;
}

function watchLoading() {
  const plainFetch = fetch;
  let bytes = 0;
  let shown = "";
  globalThis.fetch = async (...request) => {
    const response = await plainFetch(...request).catch(() => Response.error());
    if (!response.ok) { // Pyodide itself would wait forever
      postMessage({ failure: "its files could not be loaded" });
      return response;
    }
    const counted = new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk);
        bytes += chunk.byteLength;
        const tenths = Math.floor((bytes / TOTAL_BYTES) * 10);
        const progress = tenths < 10 ? `Loading Python: ${tenths * 10} %` : "Starting Python …";
        if (progress !== shown) postMessage({ progress });
        shown = progress;
      },
    });
    return new Response(response.body.pipeThrough(counted), response);
  };
}
