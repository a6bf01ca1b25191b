// A new element of the page, with its properties and its children: for the scripts that are loaded after this one.
window.bookElement = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
