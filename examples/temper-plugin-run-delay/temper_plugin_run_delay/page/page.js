"use strict";

const pods = document.getElementById("pods");

new EventSource("/run-delay/live").addEventListener("delays", (event) => {
  const delays = Object.entries(JSON.parse(event.data)).sort((a, b) => b[1] - a[1]);
  pods.replaceChildren(...delays.map(([pod, delay]) => {
    const row = document.createElement("tr");
    for (const text of [pod, delay.toFixed(3)]) {
      row.appendChild(document.createElement("td")).textContent = text;
    }
    return row;
  }));
});
