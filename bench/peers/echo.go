// Echo by Go's net package: a goroutine a connection, on one processor.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
)

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 32768)
	for {
		got, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:got]); err != nil {
			return
		}
	}
}

func main() {
	port := flag.Int("port", 0, "0 is any")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening on port", listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		connection.(*net.TCPConn).SetNoDelay(true) // (as it is by default)
		go echo(connection)
	}
}
