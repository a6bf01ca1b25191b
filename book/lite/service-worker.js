// Answers what the pages of this folder load. It isolates them, which lets Stop reach Python also where the host sends no
// headers for it (https://developer.mozilla.org/docs/Web/API/Window/crossOriginIsolated), and it keeps a copy of each
// file, for when there is no network. What a kernel asks of its page goes on to JupyterLite's own service worker.
const OURS = `mathllm-book ${self.registration.scope}`;
const KEPT = `${OURS} VERSION`; // the builder writes a mark of all files: with another edition, the copies of this one go
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith(self.registration.scope)) return;
  event.stopImmediatePropagation(); // JupyterLite's does not hear of it
  event.respondWith(answer(event));
});

self.addEventListener("activate", (event) => event.waitUntil(dropOlder()));

async function dropOlder() {
  const older = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== KEPT);
  await Promise.all(older.map((name) => caches.delete(name)));
}

async function answer(event) {
  const kept = await caches.open(KEPT);
  const place = event.request.url.replace(/[?#].*/, "");
  try {
    const fresh = await fetch(event.request);
    if (fresh.status === 200) event.waitUntil(keep(kept, place, fresh.clone()));
    return isolated(fresh);
  } catch (error) { // no network
    const copy = await kept.match(place);
    if (!copy) throw error;
    return isolated(copy);
  }
}

async function keep(kept, place, fresh) {
  const mark = (response) => response?.headers.get("ETag") ?? response?.headers.get("Last-Modified");
  if (!mark(fresh) || mark(fresh) !== mark(await kept.match(place))) await kept.put(place, fresh);
}

function isolated(response) {
  if (response.type === "opaqueredirect") return response;
  const headers = new Headers(response.headers);
  Object.entries(ISOLATION).forEach(([name, value]) => headers.set(name, value));
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

importScripts("jupyterlite-service-worker.js");
