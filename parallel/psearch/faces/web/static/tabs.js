// The parts of the page behind tabs. A part is a module that exports a function mount(root, channel): root is an empty
// element, channel a Channel. It is called once, when its tab is first opened, and may give { show(), hide() }, which are
// called as its tab comes and goes; the first show() comes right after mounting.
//
// The page has a strict content security policy: no inline script, no style="..." in markup (element.style is fine),
// nothing from elsewhere. Colours are the variables of colours.css.

export const TABS = [
  { name: "workers", label: "Workers", load: async () => (await import("./workers.js")).mountWorkers },
  { name: "laboratory", label: "Laboratory", load: async () => (await import("./laboratory.js")).mountLaboratory },
];
