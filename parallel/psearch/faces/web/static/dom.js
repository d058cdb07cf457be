// Helpers that create and find elements. Text is always set as text, never as markup.

// Create an element with children and attributes: onclick etc. are listeners; false and null leave an attribute out.
export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(element, attributes = {}, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Handle the submission of a form without loading another page.
export function onSubmit(form, act) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
}

// Tell whether a key belongs to a field, a dialog or the browser.
export function isTyped(event, more = "") {
  const isForIt = event.target.closest?.(`input, select, textarea, dialog${more}`);
  return Boolean(isForIt) || event.ctrlKey || event.altKey || event.metaKey;
}

let held = null; // the field with the focus, while the page has not taken its text

// Note from now on which field is held.
export function followTyping() {
  for (const type of ["focusin", "input"]) addEventListener(type, ({ target }) => (held = target), true);
  for (const type of ["change", "focusout"]) addEventListener(type, () => (held = null), true);
}

// Show a value in a field, unless somebody types into it or selects in it: the value may come at any time.
export function setField(field, value) {
  if (field !== held) field.value = value;
}

// Let the browser save a text or a blob as a file.
export function download(name, content, type = "text/plain") {
  const href = URL.createObjectURL(new Blob([content], { type }));
  el("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

// Create the options of a select, whose texts are their values.
export const options = (values, chosen) =>
  values.map((value) => el("option", { value, selected: value === chosen }, value));

export const byId = (id) => document.getElementById(id);

// Disable a button, or enable it, without taking the focus from it: the next key would begin elsewhere.
export const allow = (button, isAllowed) => button.setAttribute("aria-disabled", String(!isAllowed));

// Hide a button, or show it; its focus goes to another one.
export function hide(id, isHidden, other) {
  if (isHidden && document.activeElement === byId(id)) byId(other).focus();
  byId(id).hidden = isHidden;
}

// Take no clicks on buttons that are not allowed.
export function guardClicks() {
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('[aria-disabled="true"]')) event.stopImmediatePropagation();
  }, true);
}

// Set a text only if it has changed, since most texts do not change between updates.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Clear a canvas, set its size in CSS pixels, and return its context.
export function paintOn(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  const size = [width, height].map((length) => Math.round(length * scale));
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    [canvas.width, canvas.height] = size;
    canvas.style.height = `${height}px`;
  }
  const paint = canvas.getContext("2d");
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width, height);
  return paint;
}

// Return the present value of a colour variable such as "--text".
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";

// Format 1234567 as 1,234,567.
export const grouped = (number) => Math.round(number).toLocaleString("en");

// Format 1234567 as 1.23 M, 1.234 as 1.2.
export function short(number) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= 0.9995 * size) return `${(number / size).toPrecision(3)}\u2009${unit}`;
  }
  return number < 100 && !Number.isInteger(number) ? number.toFixed(1) : String(Math.round(number));
}

export function seconds(value) {
  const whole = Math.max(0, value);
  const minutes = Math.floor(whole / 60);
  const rest = Math.floor(whole % 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(rest)}`;
  if (whole < 9.95) return `0:0${whole.toFixed(1)}`;
  return `${minutes}:${pad(rest)}`;
}

const pad = (number) => String(number).padStart(2, "0");
