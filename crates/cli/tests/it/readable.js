// Put at the end of a page: tells the page around it what a reader could not see whole, or hardly read.
addEventListener("load", () => setTimeout(() => {
  const wrong = [], width = document.documentElement.clientWidth;
  const say = (what, element) => wrong.push(what + ": " + element.textContent.trim().slice(0, 60));
  for (const box of document.querySelectorAll(".table, .figures, body")) {
    if (box.scrollWidth > box.clientWidth + 1) say("wider than its place by " + (box.scrollWidth - box.clientWidth), box);
  }
  for (const text of document.querySelectorAll("p, td, th, li, h1, h2, figcaption, text")) {
    const {left, right, height} = text.getBoundingClientRect();
    const size = parseFloat(getComputedStyle(text).fontSize) * (text.getScreenCTM ? text.getScreenCTM().a : 1);
    if (height == 0 || text.closest(".unseen") || !text.textContent.trim()) continue;
    if (left < -1 || right > width + 1) say("cut at " + left.toFixed(0) + " to " + right.toFixed(0), text);
    if (size < 10) say("letters of " + size.toFixed(1) + " px", text);
  }
  parent.postMessage(JSON.stringify(wrong), "*");
}, 300));
