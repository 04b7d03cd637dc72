'use strict';

// Messages are lines of tab-separated fields (room.h). Names and texts are inserted into the page as
// text only: textContent, never as HTML.

const $ = id => document.getElementById(id);
const MAX_MESSAGES = 500; // messages in the page

let socket = null;
let me = '';
let wanted = {name: '', room: ''};
let retryDelay = 0; // milliseconds
let timer = 0;
let isInside = false;
let lastFrom = null;
let follow = true; // the last message is visible
const members = new Set();

// ---- The log ----

function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
}

function face(name) {
    let hue = 0;
    for (const letter of name) hue = (hue * 31 + letter.codePointAt(0)) % 360;
    const made = element('span', 'face', [...name][0].toUpperCase());
    made.style.setProperty('--hue', hue);
    made.setAttribute('aria-hidden', 'true');
    return made;
}

function clock(seconds) {
    const date = new Date(Number(seconds) * 1000);
    const made = element('time', '', date.toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'}));
    made.dateTime = date.toISOString();
    return made;
}

function isAtEnd() {
    const log = $('log');
    return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

function toEnd() {
    follow = true;
    $('log').scrollTop = $('log').scrollHeight;
    $('down').hidden = true;
}

function add(item, isOwn) {
    const follows = follow || isOwn;
    $('log').append(item);
    while ($('log').childElementCount > MAX_MESSAGES) $('log').firstElementChild.remove();
    if (follows) toEnd();
    else $('down').hidden = false;
}

function addMessage(time, name, text) {
    const isOwn = name === me;
    const item = element('li', 'message' + (isOwn ? ' own' : ''));
    if (lastFrom === name) item.classList.add('more');
    const from = element('div', 'from');
    from.append(element('b', '', name), clock(time));
    item.append(face(name), from, element('p', '', text));
    lastFrom = name;
    add(item, isOwn);
}

function addEvent(text, isBad) {
    lastFrom = null;
    add(element('li', 'event' + (isBad ? ' bad' : ''), text), false);
}

// ---- Members ----

function showMembers() {
    const names = [...members].sort((a, b) => a.localeCompare(b));
    $('members').replaceChildren(...names.map(name => {
        const item = element('li');
        item.append(face(name), element('span', '', name === me ? name + ' (you)' : name));
        return item;
    }));
    $('count').textContent = names.length;
}

function say(text, isBad) {
    $('state').textContent = text;
    $('state').classList.toggle('bad', Boolean(isBad));
}

// ---- Lines ----

function take(line) {
    const fields = line.split('\t');
    const [word, time, name] = fields;
    switch (word) {
    case 'welcome':
        me = time;
        isInside = true;
        retryDelay = 0;
        $('door').hidden = true;
        $('chat').hidden = false;
        $('title').textContent = wanted.room;
        document.title = '#' + wanted.room;
        $('log').replaceChildren();
        lastFrom = null;
        say('You are ' + me);
        $('text').focus();
        break;
    case 'who':
        members.clear();
        fields.slice(1).forEach(member => members.add(member));
        showMembers();
        break;
    case 'old':
    case 'said':
        addMessage(time, name, fields.slice(3).join('\t'));
        break;
    case 'joined':
        members.add(name);
        showMembers();
        addEvent(name + ' came in');
        break;
    case 'left':
        members.delete(name);
        showMembers();
        addEvent(name + ' left');
        break;
    case 'missed':
        addEvent(time === '1' ? 'One line was missed here.' : time + ' lines were missed here.', true);
        break;
    }
}

// ---- The connection ----

function connect() {
    const scheme = location.protocol === 'https:' ? 'wss://' : 'ws://';
    const mine = new WebSocket(scheme + location.host + '/chat');
    socket = mine;
    mine.onopen = () => mine.send('join\t' + wanted.room + '\t' + wanted.name);
    mine.onmessage = event => { if (mine === socket) take(event.data); };
    mine.onclose = event => { if (mine === socket) closed(event); };
}

function closed(event) {
    socket = null;
    const reason = event.reason || (event.code === 1006 ? 'the connection was lost' : 'closed (' + event.code + ')');
    if (!isInside) {
        $('error').textContent = 'It did not work: ' + reason + '.';
        return;
    }
    retryDelay = Math.min(retryDelay * 2 || 1000, 30000);
    say('Not connected: ' + reason + '. Trying again.', true);
    timer = setTimeout(connect, retryDelay * (0.7 + Math.random() * 0.6));
}

function enter(name, room) {
    wanted = {name, room};
    try { localStorage.setItem('name', name); } catch { /* storage not allowed */ }
    history.replaceState(null, '', '#' + encodeURIComponent(room));
    connect();
}

$('enter').addEventListener('submit', event => {
    event.preventDefault();
    const name = $('name').value.trim();
    const room = $('room').value.trim();
    const missing = !name ? 'name' : !room ? 'room' : '';
    $('error').textContent = missing ? 'Please fill in a ' + missing + '.' : '';
    if (missing) $(missing).focus();
    else enter(name, room);
});

$('leave').addEventListener('click', () => {
    clearTimeout(timer);
    const old = socket;
    socket = null;
    isInside = false;
    if (old) old.close(1000);
    $('chat').hidden = true;
    $('door').hidden = false;
    $('name').focus();
});

$('show').addEventListener('click', () => {
    const isOpen = $('people').classList.toggle('open');
    $('show').setAttribute('aria-expanded', isOpen);
});

// ---- Writing ----

function grow() {
    $('text').style.height = 'auto';
    $('text').style.height = $('text').scrollHeight + 2 + 'px';
}

// Limits a text to a number of bytes of UTF-8.
function cut(text) {
    const letters = [...text];
    while (new TextEncoder().encode(letters.join('')).length > 1000) letters.pop();
    return letters.join('');
}

$('say').addEventListener('submit', event => {
    event.preventDefault();
    const text = cut($('text').value);
    if (!text.trim() || !socket || socket.readyState !== WebSocket.OPEN) return;
    socket.send('say\t' + text);
    $('text').value = '';
    grow();
    $('text').focus();
});

$('text').addEventListener('input', grow);
$('text').addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $('say').requestSubmit();
});

$('down').addEventListener('click', toEnd);
$('log').addEventListener('scroll', () => {
    follow = isAtEnd();
    if (follow) $('down').hidden = true;
});
new ResizeObserver(() => { if (follow) toEnd(); }).observe($('log')); // for example when a keyboard appears

// ---- Start ----

let known = '';
try { known = localStorage.getItem('name') || ''; } catch { /* storage not allowed */ }
let room = '';
try { room = decodeURIComponent(location.hash.slice(1)); } catch { /* none */ }
$('name').value = known;
$('room').value = room || 'lobby';
$('name').focus();
