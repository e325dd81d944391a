"use strict";
// Everything that the server sends is inserted as text, never as markup.

const WAIT_MS = 250;
const EXAMPLE = {
  text: "User-agent: *\nDisallow: /private/\nAllow: /private/open\n",
  agents: "ExampleBot",
  paths: "/\n/private/diary\n/private/open",
};

const at = (id) => document.getElementById(id);
const kind = () => at("form").elements.kind.value;
const names = (id) => at(id).value.split("\n").map((name) => name.trim()).filter(Boolean);

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

// The input is kept after the "#" of the page's URL, which no server sees.
function readLocation() {
  const state = new URLSearchParams(location.hash.slice(1));
  const given = state.size ? Object.fromEntries(state) : EXAMPLE;
  for (const id of ["text", "url", "agents", "paths"]) at(id).value = given[id] ?? "";
  at("form").elements.kind.value = given.url ? "url" : "text";
}

function writeLocation() {
  const state = new URLSearchParams();
  for (const id of [kind(), "agents", "paths"]) {
    if (at(id).value) state.set(id, at(id).value);
  }
  history.replaceState(null, "", `#${state}`);
}

let timer = 0;
let asking = new AbortController();

function ask(wait) {
  clearTimeout(timer);
  const isUrl = kind() === "url";
  at("text-part").hidden = isUrl;
  at("url-part").hidden = !isUrl;
  timer = setTimeout(answer, wait);
}

async function answer() {
  asking.abort();
  asking = new AbortController();
  const isUrl = kind() === "url";
  const query = {
    text: isUrl ? null : at("text").value,
    url: isUrl ? at("url").value : "",
    agents: names("agents"),
    paths: names("paths"),
  };
  if (isUrl && !query.url) return;
  writeLocation();
  tell(isUrl ? "Fetching …" : "");
  try {
    const response = await fetch("answers", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(query),
      signal: asking.signal,
    });
    const content = await response.json();
    if (content.error) throw new Error(content.error);
    show(content);
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, "error");
  }
}

function tell(text, className = "") {
  at("status").textContent = text;
  at("status").className = className;
}

function show(content) {
  const deciding = new Map();
  const rows = content.answers.map((one) => {
    if (one.line) deciding.set(one.line, [...(deciding.get(one.line) ?? []), one]);
    return rowOf(one);
  });
  at("answers").tBodies[0].replaceChildren(...rows);
  at("lines").replaceChildren(...content.lines.map((line) => lineOf(line, content.findings, deciding)));
  at("about-file").replaceChildren(
    ...content.findings.filter((one) => one.line === 0).map((one) => {
      const item = document.createElement("li");
      item.append(findingOf(one));
      return item;
    }),
  );
  const more = [];
  if (content.more_lines) more.push(`${content.more_lines} more lines`);
  if (content.more_findings) more.push(`${content.more_findings} more findings`);
  at("more").textContent = more.join(", ");
  at("source").textContent = content.source ? sourceOf(content.source) : "";
  const refused = content.answers.filter((one) => one.allowed === false).length;
  const allowed = content.answers.filter((one) => one.allowed).length;
  tell(`${allowed} allowed, ${refused} disallowed, findings: ${content.findings.length + content.more_findings}`);
}

function rowOf(one) {
  const row = document.createElement("tr");
  const word = one.allowed === null ? "?" : one.allowed ? "✓ allowed" : "✗ disallowed";
  const why = element("td", one.reason);
  if (one.line) {
    why.append(" ");
    const link = element("a", `show line ${one.line}`);
    link.href = "#";
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const line = at(`line-${one.line}`);
      line?.scrollIntoView({ block: "center" });
      line?.focus();
    });
    why.append(link);
  }
  const className = one.allowed === null ? "" : one.allowed ? "allowed" : "disallowed";
  row.append(element("td", one.path), element("td", one.agent), element("td", word, className), why);
  return row;
}

function lineOf(line, findings, deciding) {
  const item = element("li", line.text);
  item.id = `line-${line.number}`;
  item.value = line.number;
  if (deciding.has(line.number)) {
    item.className = "decides";
    item.tabIndex = -1;
    for (const one of deciding.get(line.number)) {
      item.append(element("span", `← applies to ${one.path} for ${one.agent}`, "finding"));
    }
  }
  for (const one of findings) if (one.line === line.number) item.append(findingOf(one));
  return item;
}

function findingOf(one) {
  return element("span", `${one.severity}: ${one.message} [${one.code}]`, `finding ${one.severity}`);
}

function sourceOf(source) {
  const date = (seconds) => new Date(seconds * 1000).toLocaleString();
  const parts = [`${source.url}: ${source.access}${source.status ? ` (${source.status})` : ""}`];
  for (const [url, status] of source.redirects) parts.push(`redirect ${status} to ${url}`);
  if (source.error) parts.push(source.error);
  if (source.fetched_at) parts.push(`fetched ${date(source.fetched_at)}`);
  if (source.is_stale) parts.push("stale copy, because the site is unreachable");
  if (source.fresh_until) parts.push(`next fetch after ${date(source.fresh_until)}`);
  return parts.join("\n");
}

at("form").addEventListener("submit", (event) => event.preventDefault());
at("form").addEventListener("input", (event) => ask(event.target.id === "url" ? 4 * WAIT_MS : WAIT_MS));
addEventListener("hashchange", () => { readLocation(); ask(0); });
readLocation();
ask(0);
