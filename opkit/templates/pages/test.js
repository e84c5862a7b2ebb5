// The filter of the cases; sorting.js sorts them.
"use strict";
(() => {
  const table = document.getElementById("cases"), rows = [...table.tBodies[0].rows];
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  const show = () => {
    const words = filter.value.toLowerCase().split(" ").filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length}`;
  };
  filter.addEventListener("input", show);
  show();
})();
