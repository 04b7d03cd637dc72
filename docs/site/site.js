/* The search. Its index is search-index.js: rows of a title, an address and a kind, the shortest titles first. */
"use strict";
{
    const root = document.currentScript.dataset.root;
    const form = document.querySelector(".search");
    const input = document.querySelector("#search");
    const found = document.querySelector("#found");
    const LIMIT = 30;

    /* 0: the title is all that is asked for; 1: begins with it; 2: has it; 3: has each word; -1: none of that. */
    const rank = (title, text, words) => {
        if (title === text)
            return 0;
        if (title.startsWith(text) || title.startsWith("bide_" + text))
            return 1;
        if (title.includes(text))
            return 2;
        return words.every((word) => title.includes(word)) ? 3 : -1;
    };

    const look = () => {
        const text = input.value.trim().toLowerCase();
        const words = text.split(/\s+/);
        const rows = [];
        if (text.length > 1)
            searchIndex.forEach(([title, address, kind], order) => {
                const at = rank(title.toLowerCase(), text, words);
                if (at >= 0)
                    rows.push({title, address, kind, at, order});
            });
        rows.sort((one, other) => one.at - other.at || one.order - other.order);
        found.replaceChildren(...rows.slice(0, LIMIT).map(({title, address, kind}) => {
            const item = document.createElement("li");
            const link = document.createElement("a");
            const small = document.createElement("small");
            link.href = `${root}/${address}`;
            small.textContent = " " + kind;
            link.append(title, small);
            item.append(link);
            return item;
        }));
    };

    form.hidden = false;
    input.addEventListener("input", look);
    input.addEventListener("keydown", (event) => {
        if (event.key === "Escape")
            input.value = "", look();
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const first = found.querySelector("a");
        if (first !== null)
            location.href = first.href;
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement.tagName !== "INPUT")
            event.preventDefault(), input.focus();
    });
}
