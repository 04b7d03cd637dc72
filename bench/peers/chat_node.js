// The chat's room by node's ws, for bench/chat.sh: each message is delivered to all members. The first line ends with the port.
'use strict';
const {WebSocketServer} = require('ws');

const server = new WebSocketServer({port: 0, host: '127.0.0.1', perMessageDeflate: false});
const members = new Set();

server.on('connection', socket => {
    let name = '';
    socket.on('message', data => {
        const fields = data.toString().split('\t');
        if (fields[0] === 'join') {
            name = fields[2];
            for (const member of members) member.send('joined\t0\t' + name);
            members.add(socket);
            socket.send('welcome\t' + name);
        } else {
            const line = 'said\t' + Math.floor(Date.now() / 1000) + '\t' + name + '\t' + fields.slice(1).join('\t');
            for (const member of members) member.send(line);
        }
    });
    socket.on('close', () => members.delete(socket));
});
server.on('listening', () => console.log('listening on port ' + server.address().port));
