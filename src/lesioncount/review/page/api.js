// What the page asks of the server. An answer to a decision means that it is on disk.
import { alarm } from "./markup.js";

const GONE = "The server does not answer. Start `lesioncount review` again and open the address it prints: all that was shown as saved is there.";

async function ask(method, path, body) {
  const options = { method, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    alarm(GONE);
    throw new Error(GONE, { cause: error });
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const sentence = found.error ?? `The server answered with ${answer.status}.`;
    alarm(sentence);
    throw new Error(sentence);
  }
  alarm(null);
  return found;
}

export const session = () => ask("GET", "/api/session");
export const setReader = (name) => ask("POST", "/api/reader", { name });
export const cohort = () => ask("GET", "/api/cohort");
export const scan = (id) => ask("GET", `/api/scan/${id}`);
export const decide = (id, decision) => ask("POST", `/api/scan/${id}/decisions`, decision);
export const add = (id, lesion) => ask("POST", `/api/scan/${id}/added`, lesion);
export const undo = (id) => ask("POST", `/api/scan/${id}/undo`, {});
export const finish = (id, ending) => ask("POST", `/api/scan/${id}/done`, ending);
export const finishEmpty = () => ask("POST", "/api/empty", {});
export const exportAll = () => ask("POST", "/api/export", {});
export const volume = (id, what) => `/api/scan/${id}/${what}.nii.gz`;
