// Days, as filters and people have them.

const LONG = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** A moment in seconds as a day, `2026-01-31`, in UTC as the index counts them. */
export const dayOf = (seconds) => valid(seconds * 1000)?.toISOString().slice(0, 10) ?? "";

/** A moment in seconds, with its time, on the clock of the reader. */
export const momentOf = (seconds) => {
  const date = valid(seconds * 1000);
  return date ? LONG.format(date) : "";
};

/** The day after one; empty for what is no day. */
export function nextDay(day) {
  const date = valid(Date.parse(`${day}T00:00:00Z`));
  return date ? dayOf(date.getTime() / 1000 + 86400) : "";
}

/** Whether a text is a day. */
export const isDay = (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && Boolean(valid(Date.parse(`${text}T00:00:00Z`)));

/** `3 min ago`. */
export function ago(seconds, now = Date.now() / 1000) {
  const passed = now - seconds;
  if (passed < 60) return "just now";
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  if (passed < 129600) return `${Math.round(passed / 3600)} h ago`;
  return passed < 86400 * 60 ? `${Math.round(passed / 86400)} days ago` : dayOf(seconds);
}

function valid(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
