// Questions to the console's own server. A failure is an Error with the server's sentence.
export class Refused extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

export async function ask(path, given = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  let response;
  try {
    response = await fetch(`/api/${path}${text ? `?${text}` : ""}`, { signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The console does not answer.", 0);
  }
  if (response.status === 401) {
    location.assign("/login");
    throw new Refused("The session has ended.", 401);
  }
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.error ?? `status ${response.status}`, response.status);
  return answer;
}
