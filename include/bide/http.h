/*
 * HTTP and WebSocket, all of it: servers, clients, messages and URLs. Link with the library bide-http. Floor: http.
 *
 * HTTP/2 is in bide/http2.h, and is a library of its own, bide-http2.
 */
#ifndef BIDE_HTTP_H
#define BIDE_HTTP_H

#include "bide/http_agent.h"
#include "bide/http_client.h"
#include "bide/http_compression.h"
#include "bide/http_event_reader.h"
#include "bide/http_events.h"
#include "bide/http_files.h"
#include "bide/http_cookies.h"
#include "bide/http_form.h"
#include "bide/http_log.h"
#include "bide/http_message.h"
#include "bide/http_multipart.h"
#include "bide/http_multipart_writer.h"
#include "bide/http_router.h"
#include "bide/http_server.h"
#include "bide/http_url.h"
#include "bide/http_websocket.h"
#include "bide/websocket.h"
#include "bide/websocket_deflate.h"

#endif
