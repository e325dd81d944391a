// All results are inserted as text, never as markup.

import { answer, isLocal, note } from "./answers.js";

const WAIT_MS = 250;
const LINES_PER_BLOCK = 100;
const EXAMPLE = {
  text: "User-agent: *\nDisallow: /private/\nAllow: /private/open\nDisalow: /drafts/\n",
  agents: "ExampleBot",
  paths: "/private/diary\n/private/open\n/drafts/1",
};
const NOTHING = { answers: [], lines: [], findings: [] };

const at = (id) => document.getElementById(id);
const kind = () => at("form").elements.kind.value;
const names = (id) => at(id).value.split("\n").map((name) => name.trim()).filter(Boolean);

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

// The input is kept in the URL's fragment, which the browser never sends to a server.
function readLocation() {
  const state = new URLSearchParams(location.hash.slice(1));
  const given = state.size ? Object.fromEntries(state) : EXAMPLE;
  for (const id of ["text", "url", "agents", "paths"]) at(id).value = given[id] ?? "";
  at("form").elements.kind.value = !isLocal && given.url ? "url" : "text";
}

function writeLocation() {
  const state = new URLSearchParams();
  for (const id of [kind(), "agents", "paths"]) {
    if (at(id).value) state.set(id, at(id).value);
  }
  try {
    history.replaceState(null, "", `#${state}`);
  } catch {
    // The URL is too long or changes too often: the check continues without it.
  }
}

let timer = 0;
let asking = new AbortController();

function ask(wait) {
  clearTimeout(timer);
  const isUrl = kind() === "url";
  at("text-part").hidden = isUrl;
  at("url-part").hidden = !isUrl;
  timer = setTimeout(check, wait);
}

async function check() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const isUrl = kind() === "url";
  const query = {
    text: isUrl ? null : at("text").value,
    url: isUrl ? at("url").value.trim() : "",
    agents: names("agents"),
    paths: names("paths"),
  };
  if (isUrl && !query.url) {
    show(NOTHING);
    return tell("Enter a site");
  }
  writeLocation();
  tell(isUrl ? "Fetching …" : "");
  try {
    const content = await answer(query, { signal, tell });
    if (signal.aborted) return;
    if (content.error) throw new Error(content.error);
    show(content);
    tell(summaryOf(content));
  } catch (error) {
    if (signal.aborted) return;
    show(NOTHING);
    tell(error.message, "error");
  }
}

function tell(text, className = "") {
  at("status").textContent = text;
  at("status").className = className;
}

function summaryOf(content) {
  const count = (allowed) => content.answers.filter((one) => one.allowed === allowed).length;
  const findings = content.findings.length + content.more_findings;
  return `${count(true)} allowed, ${count(false)} disallowed, findings: ${findings}`;
}

function show(content) {
  const answers = byLine(content.answers);
  const findings = byLine(content.findings);
  at("answers").tBodies[0].replaceChildren(...content.answers.map(rowOf));
  const lines = content.lines.map((line) => lineOf(line, answers, findings));
  at("lines").replaceChildren(...blocksOf(lines));
  at("about-file").replaceChildren(
    ...(findings.get(0) ?? []).map((one) => {
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
}

function byLine(ones) {
  const lines = new Map();
  for (const one of ones) {
    if (!lines.has(one.line)) lines.set(one.line, []);
    lines.get(one.line).push(one);
  }
  return lines;
}

function rowOf(one) {
  const row = document.createElement("tr");
  const word = one.allowed === null ? "?" : one.allowed ? "✓ allowed" : "✗ disallowed";
  const result = one.dialect ? `${word} (${one.dialect})` : word;
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
  row.append(cellOf(one.path), cellOf(one.agent), element("td", result, className), why);
  return row;
}

// A cell as wide as its text, up to the maximum in the style sheet.
function cellOf(text) {
  const cell = document.createElement("td");
  cell.append(element("div", text));
  return cell;
}

// Split into blocks so that the browser only lays out those in view.
function blocksOf(lines) {
  const blocks = [];
  for (let start = 0; start < lines.length; start += LINES_PER_BLOCK) {
    const block = document.createElement("ol");
    block.start = start + 1;
    block.append(...lines.slice(start, start + LINES_PER_BLOCK));
    blocks.push(block);
  }
  return blocks;
}

function lineOf(line, answers, findings) {
  const item = element("li", line.text);
  item.id = `line-${line.number}`;
  if (answers.has(line.number)) {
    item.className = "decides";
    item.tabIndex = -1;
  }
  for (const one of answers.get(line.number) ?? []) {
    const dialect = one.dialect ? ` (${one.dialect})` : "";
    item.append(element("span", `← applies to ${one.path} for ${one.agent}${dialect}`, "finding"));
  }
  for (const one of findings.get(line.number) ?? []) item.append(findingOf(one));
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

at("kinds").hidden = isLocal;
at("note").textContent = note;
at("form").addEventListener("submit", (event) => { event.preventDefault(); ask(0); });
at("form").addEventListener("input", (event) => ask(event.target.id === "url" ? 4 * WAIT_MS : WAIT_MS));
addEventListener("hashchange", () => { readLocation(); ask(0); });
readLocation();
if (isLocal && !location.hash) tell("Edit something, or press Check");
else ask(0);
