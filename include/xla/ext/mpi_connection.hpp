// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sockets between the processes of a world, which detect that a process has died. Elements travel
// by MPI; mpi_liveness.hpp decides what a broken connection means.

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace xla::mpi::detail {

/// A file descriptor that the destructor closes.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

inline bool readable(int fd, int milliseconds) noexcept {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, milliseconds) > 0;
}

/// A message between processes; a text of this many bytes follows.
struct notice {
  enum class kind : std::uint32_t {
    joins,
    accepted,
    begins,
    value,
    count_query,
    counts,
    ends,
    leaves,
    done
  };
  kind what{};
  std::int32_t rank = 0;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

/// A connection between two processes. The kernel closes it when one of them dies.
class connection {
 public:
  connection() = default;
  explicit connection(descriptor socket) : socket_(std::move(socket)) {
    const auto set = [&](int level, int name, int value) {
      ::setsockopt(socket_.get(), level, name, &value, sizeof value);
    };
    // A machine that disappears is noticed after eight seconds, whatever its processes were doing.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    const timeval patience{2, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  int get() const noexcept { return socket_.get(); }

  /// The receiving side finds out that the other side is gone.
  void send_notice(notice n, const std::string& text = {}) const noexcept {
    n.bytes = text.size();
    send(&n, sizeof n);
    send(text.data(), text.size());
  }
  void shut_down() const noexcept { ::shutdown(get(), SHUT_WR); }

  /// Receives what has arrived; false at the connection's end.
  bool take() {
    char chunk[4096];
    const auto count = ::recv(get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    inbox_.append(chunk, static_cast<std::size_t>(count));
    return count > 0;
  }
  /// The next complete notice among the bytes received, if there is one.
  bool next(notice& n, std::string& text) {
    if (inbox_.size() < sizeof n) return false;
    std::memcpy(&n, inbox_.data(), sizeof n);
    if (inbox_.size() - sizeof n < n.bytes) return false;
    text = inbox_.substr(sizeof n, n.bytes);
    inbox_.erase(0, sizeof n + n.bytes);
    return true;
  }
  /// Waits for a notice: the first after a connection is made.
  bool await(notice& n, int milliseconds) {
    std::string text;
    while (!next(n, text))
      if (!readable(get(), milliseconds) || !take()) return false;
    return true;
  }

 private:
  void send(const void* from, std::size_t bytes) const noexcept {
    for (auto at = static_cast<const char*>(from); bytes != 0;) {
      const auto sent = ::send(get(), at, bytes, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
  }

  descriptor socket_;
  std::string inbox_;
};

/// The address of a process, and a secret that outsiders do not know.
struct endpoint {
  std::uint64_t word = 0;
  std::uint16_t port = 0;  // in network byte order, like the addresses
  std::uint16_t count = 0;
  std::array<std::uint32_t, 14> addresses{};
};

inline sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in p{};
  p.sin_family = AF_INET;
  p.sin_addr.s_addr = address;
  p.sin_port = port;
  return p;
}

/// A socket that listens at any free port, and its addresses; none if it cannot be opened.
inline descriptor listen_anywhere(endpoint& c) {
  descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in any = socket_address(htonl(INADDR_ANY), 0);
  socklen_t length = sizeof any;
  const auto address = reinterpret_cast<sockaddr*>(&any);
  if (!socket || ::bind(socket.get(), address, length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0 || ::getsockname(socket.get(), address, &length) != 0)
    return {};
  c.port = any.sin_port;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) all = nullptr;
  for (const ifaddrs* a = all; a && c.count + 1u < c.addresses.size(); a = a->ifa_next) {
    if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own;
    std::memcpy(&own, a->ifa_addr, sizeof own);
    if (ntohl(own.sin_addr.s_addr) >> 24 != 127) c.addresses[c.count++] = own.sin_addr.s_addr;
  }
  if (all) ::freeifaddrs(all);
  c.addresses[c.count++] = htonl(INADDR_LOOPBACK);  // last, as on another machine it is another one
  return socket;
}

/// Connects to an address; none if that takes more than two seconds.
inline descriptor connect_to(std::uint32_t address, std::uint16_t port) {
  descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const sockaddr_in there = socket_address(address, port);
  if (!socket) return socket;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
    pollfd one{socket.get(), POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    if (errno != EINPROGRESS || ::poll(&one, 1, 2000) <= 0 ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
      return {};
  }
  ::fcntl(socket.get(), F_SETFL, 0);  // send_notice() waits
  return socket;
}

}  // namespace xla::mpi::detail
