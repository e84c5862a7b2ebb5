// The button that turns a page dark or light, whatever the system says; the choice is kept where the browser allows it.
"use strict";
(() => {
  const root = document.documentElement, dark = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = (value) => {
    try {
      if (value) localStorage.setItem("opkit-theme", value);
      return localStorage.getItem("opkit-theme");
    } catch { return null; }
  };
  if (kept()) root.dataset.theme = kept();
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "opkit-theme";
    const name = () => { button.textContent = isDark() ? "light" : "dark"; button.title = `turn the page ${button.textContent}`; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept(root.dataset.theme);
      name();
      window.dispatchEvent(new Event("opkit-theme"));
    });
    dark.addEventListener("change", () => { name(); window.dispatchEvent(new Event("opkit-theme")); });
    name();
    (document.querySelector("body > header") || document.querySelector("main") || document.body).append(button);
  });
})();
