/**
 * Keeps the page up to date: fetches it again after an event of the stream, and every 30 s. Shows its times in the
 * reader's zone, or in UTC.
 */

const EVENTS = new URL('../api/v1/events', import.meta.url);
/** Delay between an event and the fetch of the page. Polls are frequent and rarely change the page. */
const DELAYS_MS = { transition: 1000, failure: 1000, experiment: 1000, reset: 1000, poll: 10_000 };
const REGULARLY_MS = 30_000;
/** Pause after a fetch, as a multiple of its duration: a slow server is asked less often. */
const PAUSE_PER_COST = 10;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** Key of what the reader chose in the storage of the browser. */
const CHOICE = 'evalwatch-times';

const live = document.getElementById('live');
const announcement = document.getElementById('announcement');
let stream;
let timer;
let dueAt = Infinity;
let earliest = 0;
let isRefreshing = false;
let lostAt;
let isUtc = isUtcKept();

function listen() {
  if (document.hidden || (stream && stream.readyState !== EventSource.CLOSED)) return;
  stream = new EventSource(EVENTS);
  stream.addEventListener('open', showState);
  stream.addEventListener('error', showState);
  for (const [type, delay] of Object.entries(DELAYS_MS)) {
    stream.addEventListener(type, () => refreshWithin(delay));
  }
}

function refreshWithin(delay) {
  const at = Math.max(performance.now() + delay, earliest);
  if (at >= dueAt) return;
  clearTimeout(timer);
  dueAt = at;
  timer = setTimeout(() => void refresh(), at - performance.now());
}

async function refresh() {
  clearTimeout(timer);
  dueAt = Infinity;
  if (isRefreshing) return refreshWithin(DELAYS_MS.reset);
  if (document.hidden) return;
  if (isBusy()) return showState();
  isRefreshing = true;
  const started = performance.now();
  try {
    const answer = await fetch(location.href, { signal: AbortSignal.timeout(REGULARLY_MS) });
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const main = next.querySelector('main');
    if (!main) throw new Error('not the page');
    showTimes(main);
    lostAt = undefined;
    if (!isBusy()) swap(main, next.title);
  } catch {
    lostAt ??= new Date();
  }
  const ended = performance.now();
  earliest = ended + (ended - started) * PAUSE_PER_COST;
  isRefreshing = false;
  showState();
}

/** Whether the reader is typing, or has selected text to copy it. */
function isBusy() {
  return document.activeElement?.matches('input, select') || getSelection()?.isCollapsed === false;
}

function swap(next, title) {
  const main = document.getElementById('main');
  const wasFocused = main.contains(document.activeElement) ? document.activeElement : undefined;
  const focus = wasFocused && place(main, wasFocused);
  const open = new Set(
    Array.from(main.querySelectorAll('details[open]'), (each) => place(main, each)),
  );
  const { scrollX, scrollY } = window;
  const hasNews = main.dataset.summary !== next.dataset.summary;

  main.dataset.summary = next.dataset.summary;
  main.replaceChildren(...next.childNodes);
  for (const each of main.querySelectorAll('details')) each.open = open.has(place(main, each));
  if (focus) {
    const again = [...main.querySelectorAll(wasFocused.localName)].find(
      (each) => place(main, each) === focus,
    );
    (again ?? main).focus({ preventScroll: true });
  }
  window.scrollTo({ left: scrollX, top: scrollY, behavior: 'instant' });
  document.title = title;
  if (hasNews) announcement.textContent = next.dataset.summary;
}

/** Key of an element by its text and position, so that it can be found again in the new page. */
function place(main, element) {
  const sign = (each) =>
    `${each.getAttribute('href')} ${(each.querySelector('summary') ?? each).textContent}`;
  const section = element.closest('section')?.getAttribute('aria-labelledby') ?? '';
  const same = [...main.querySelectorAll(element.localName)].filter(
    (each) =>
      sign(each) === sign(element) &&
      (each.closest('section')?.getAttribute('aria-labelledby') ?? '') === section,
  );
  return `${section} ${sign(element)} ${same.indexOf(element)}`;
}

function showState() {
  const text = stateText();
  live.classList.toggle('lost', lostAt !== undefined);
  if (live.textContent === text) return;
  live.textContent = text;
  if (lostAt !== undefined) announcement.textContent = text;
}

function stateText() {
  if (lostAt !== undefined) {
    const since = timeText(lostAt, isUtc, true);
    return `No answer from evalwatch since ${since}: this page is out of date`;
  }
  if (isBusy()) return 'Waits while you type or select';
  return stream?.readyState === EventSource.OPEN ? 'Live' : 'Updated every 30 s';
}

/**
 * `2026-11-29 17:05:00 UTC+1`; short, `17:05 UTC+5:30`. The offset tells equal times of a night in autumn apart.
 */
function timeText(date, inUtc, isShort) {
  const minutes = inUtc ? 0 : -date.getTimezoneOffset();
  const iso = new Date(date.getTime() + minutes * 60_000).toISOString();
  const offset = new Date(Math.abs(minutes) * 60_000).toISOString().slice(11, 16);
  const hours = `${minutes < 0 ? '-' : '+'}${offset.replaceAll(/^0|:00$/g, '')}`;
  return `${isShort ? iso.slice(11, 16) : iso.slice(0, 19).replace('T', ' ')} UTC${minutes === 0 ? '' : hours}`;
}

/** Shows the times as chosen, and in the tooltips the other way. */
function showTimes(root) {
  for (const time of root.querySelectorAll('time')) {
    const text = (inUtc) => timeText(new Date(time.dateTime), inUtc, time.className === 'clock');
    time.textContent = text(isUtc);
    time.title = text(!isUtc);
  }
}

/** Adds the switch to the header, unless the reader's zone is UTC. */
function addSwitch() {
  if (ZONE === 'UTC') return;
  const button = document.createElement('button');
  const show = () => {
    button.textContent = `Times: ${isUtc ? 'UTC' : ZONE}`;
    showTimes(document);
    showState();
  };
  button.addEventListener('click', () => {
    isUtc = !isUtc;
    show();
    try {
      localStorage.setItem(CHOICE, isUtc ? 'utc' : 'local');
    } catch {}
  });
  live.after(button);
  show();
}

/** Whether the reader chose UTC. A browser that refuses to store forgets it with the page. */
function isUtcKept() {
  try {
    return localStorage.getItem(CHOICE) === 'utc';
  } catch {
    return false;
  }
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    stream?.close();
  } else {
    listen();
    void refresh();
  }
});
setInterval(() => {
  listen();
  void refresh();
}, REGULARLY_MS);
addSwitch();
listen();
showState();
