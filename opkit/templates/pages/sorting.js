// Tables of the class "sortable": a button in each head sorts by its column, by mouse and by keyboard.
"use strict";
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], rows = [...body.rows];
    heads.forEach((head, column) => {
      if (!head.dataset.kind) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      const cell = (row) => row.cells[column];
      const key = head.dataset.kind === "number"
        ? (row) => parseFloat(cell(row).dataset.value ?? cell(row).textContent) || 0
        : (row) => cell(row).textContent;
      const order = (a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
      button.addEventListener("click", () => {
        const first = head.dataset.kind === "number" && head.dataset.first === "largest" ? "descending" : "ascending";
        const now = head.getAttribute("aria-sort");
        const next = now ? (now === "ascending" ? "descending" : "ascending") : first;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", next);
        body.append(...rows.sort((a, b) => next === "descending" ? order(b, a) : order(a, b)));
      });
    });
  }
})();
