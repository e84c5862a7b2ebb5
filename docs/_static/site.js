// What the theme's markup lacks for readers of the screen and for the keyboard.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) caption.setAttribute("aria-level", "2");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "contents of the site");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "contents of the page");
  // The page of the search has a heading only when something is found.
  if (!document.querySelector("h1")) {
    const head = document.createElement("h1");
    head.textContent = document.title.split(" - ")[0];
    document.querySelector("article")?.prepend(head);
  }
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper, article table, .toc-scroll, .sidebar-scroll")) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    }
  };
  reach();
  addEventListener("resize", reach);
  addEventListener("load", reach);
});
