// Puts a menu of the site's versions under its title (scripts/versions.py writes the
// list). A copy without the list, as on a disk, has only the version in its title.
(async () => {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  let versions;
  try {
    versions = await (await fetch(new URL("../versions.json", root))).json();
  } catch {
    return;
  }
  const urls = versions.map((one) => new URL(`../${one.url}`, root).href);
  const here = urls.indexOf(root.href);
  const page = location.href.slice(root.href.length);

  // The same page of another version, or its front page if it has none.
  const pageOf = async (url) => {
    const same = new URL(page, url);
    const found = await fetch(same, { method: "HEAD" }).then((r) => r.ok, () => false);
    return found ? same.href : url;
  };

  const menu = document.createElement("select");
  menu.className = "versions";
  menu.setAttribute("aria-label", "Version");
  versions.forEach((one, i) => {
    const option = document.createElement("option");
    option.value = urls[i];
    option.textContent = one.name;
    option.selected = i === here;
    menu.append(option);
  });
  menu.addEventListener("change", async () => {
    location.href = await pageOf(menu.value);
  });
  document.querySelector(".sidebar-brand")?.after(menu);

  const preferred = versions.findIndex((one) => one.preferred);
  if (here >= 0 && preferred >= 0 && here !== preferred) {
    const note = document.createElement("p");
    note.className = "other-version";
    const link = document.createElement("a");
    link.href = urls[preferred];
    link.textContent = versions[preferred].version;
    note.append(`This page is about ${versions[here].version}; the newest release is `);
    note.append(link, ".");
    document.querySelector("article")?.prepend(note);
  }
})();
