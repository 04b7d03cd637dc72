/*
 * says: bide_websocket_send_fragment is called with its bide_websocket_send_operation here: bide_websocket_send_fragment needs it afterwards
 */
#include <bide/async.h>
#include <bide/http.h>

async int f(bide_websocket *websocket)
{
    return await bide_websocket_send_fragment(websocket, BIDE_WEBSOCKET_TEXT, "a", 1, false); /* HERE */
}
