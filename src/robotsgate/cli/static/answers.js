// Sends the query to the server behind this page.

export const isLocal = false;
export const note = "";

export async function answer(query, { signal }) {
  const response = await fetch("answers", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(query),
    signal,
  });
  return response.json();
}
