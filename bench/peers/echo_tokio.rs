// Echo by tokio: a task a connection, on the runtime of one thread.
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

async fn echo(mut socket: TcpStream) {
    let mut buffer = vec![0u8; 32768];
    loop {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(got) => {
                if socket.write_all(&buffer[..got]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port: u16 = match arguments.as_slice() {
        [_, name, port] if name == "--port" => port.parse().expect("a port"),
        _ => panic!("usage: echo --port N"),
    };
    let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a socket that listens");
        println!("listening on port {}", listener.local_addr().expect("an address").port());
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            socket.set_nodelay(true).expect("no delay");
            tokio::spawn(echo(socket));
        }
    });
}
