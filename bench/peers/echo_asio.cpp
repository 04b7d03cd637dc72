// Echo with Asio's callbacks: one thread, with a context and sockets configured for it (no locks, no type-erased executor).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#if __has_include(<asio.hpp>)
#include <asio.hpp>
#define UNSAFE ASIO_CONCURRENCY_HINT_UNSAFE
namespace errors = std;
#else
#include <boost/asio.hpp>
#define UNSAFE BOOST_ASIO_CONCURRENCY_HINT_UNSAFE
namespace asio = boost::asio;
namespace errors = boost::system;
#endif

namespace
{

using asio::ip::tcp;
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;

class connection
{
  public:
    explicit connection(tcp_socket &&accepted) : socket(std::move(accepted))
    {
        socket.set_option(tcp::no_delay(true));
    }

    void receive()
    {
        socket.async_read_some(asio::buffer(buffer),
                               [this](errors::error_code error, std::size_t got) {
                                   if (error)
                                       delete this;
                                   else
                                       send(got);
                               });
    }

  private:
    void send(std::size_t size)
    {
        asio::async_write(socket, asio::buffer(buffer, size),
                          [this](errors::error_code error, std::size_t) {
                              if (error)
                                  delete this;
                              else
                                  receive();
                          });
    }

    tcp_socket socket;
    char buffer[32768];
};

void accept(tcp_acceptor &acceptor)
{
    acceptor.async_accept([&acceptor](errors::error_code error, tcp_socket accepted) {
        if (!error)
            (new connection(std::move(accepted)))->receive();
        accept(acceptor);
    });
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3 || std::strcmp(argv[1], "--port") != 0) {
        std::fprintf(stderr, "usage: %s --port N\n", argv[0]);
        return 2;
    }
    try {
        asio::io_context context(UNSAFE);
        tcp::endpoint any(asio::ip::address_v4::loopback(),
                          static_cast<unsigned short>(std::atoi(argv[2])));
        tcp_acceptor acceptor(context, any.protocol());
        acceptor.set_option(tcp_acceptor::reuse_address(true));
        acceptor.bind(any);
        acceptor.listen(4096);
        std::printf("listening on port %u\n", acceptor.local_endpoint().port());
        std::fflush(stdout);
        accept(acceptor);
        context.run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "echo_asio: %s\n", error.what());
        return 1;
    }
}
