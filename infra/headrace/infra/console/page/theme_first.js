// Before anything is drawn: the theme that was chosen here, if one was. A classic script, so that it comes first.
(function () {
  try {
    const chosen = localStorage.getItem("headrace-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (error) {
    // No storage: the system's theme it is.
  }
})();
