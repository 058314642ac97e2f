// SPDX-License-Identifier: Apache-2.0
#pragma once

// TCP connections between processes. Only POSIX systems have them here: processes of a world need
// MPI, which runs nowhere else yet.

#include "xla/base/system/platform.hpp"

#if XLA_POSIX
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace xla::sys {

/// A socket that the destructor closes.
class socket {
 public:
  socket() = default;
  explicit socket(int handle) noexcept : handle_(handle) {}
  socket(socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  socket& operator=(socket&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  explicit operator bool() const noexcept { return handle_ >= 0; }
  int handle() const noexcept { return handle_; }

  /// Whether there is something to receive or to accept, within this time.
  bool readable(int milliseconds) const noexcept {
    pollfd one{handle_, POLLIN, 0};
    return ::poll(&one, 1, milliseconds) > 0;
  }
  /// A connection that another process has asked a listening socket for; none if that failed.
  socket accept() const noexcept {
    return socket{::accept4(handle_, nullptr, nullptr, SOCK_CLOEXEC)};
  }

  /// Sends without delay, and ends a connection whose other machine has disappeared: after eight
  /// seconds, whatever its processes were doing.
  void keep_alive() const noexcept {
    const auto set = [&](int level, int name, int value) {
      ::setsockopt(handle_, level, name, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    const timeval patience{2, 0};
    ::setsockopt(handle_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }

  /// Sends all of it. The receiving side finds out that the other side is gone.
  void send(const void* from, std::size_t bytes) const noexcept {
    for (auto at = static_cast<const char*>(from); bytes != 0;) {
      const auto sent = ::send(handle_, at, bytes, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
  }
  /// Appends what has arrived; false at the connection's end.
  bool receive(std::string& to) const {
    char chunk[4096];
    const auto count = ::recv(handle_, chunk, sizeof chunk, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    to.append(chunk, static_cast<std::size_t>(count));
    return count > 0;
  }
  /// Says that this side sends no more.
  void shut_down() const noexcept { ::shutdown(handle_, SHUT_WR); }
  /// Closes it in a forked child, where it would otherwise outlive this process. The object stays.
  void close_in_child() const noexcept { ::close(handle_); }

 private:
  int handle_ = -1;
};

/// Sockets that one thread waits for together.
class socket_set {
 public:
  void add(const socket& s) { all_.push_back({s.handle(), POLLIN, 0}); }
  void remove(std::size_t i) { all_[i].fd = -1; }
  std::size_t size() const { return all_.size(); }
  bool empty() const {
    return std::all_of(all_.begin(), all_.end(), [](const pollfd& p) { return p.fd < 0; });
  }
  void wait(int milliseconds) { ::poll(all_.data(), all_.size(), milliseconds); }
  /// Whether the last wait found something at a socket, or its end.
  bool ready(std::size_t i) const { return all_[i].fd >= 0 && all_[i].revents != 0; }

 private:
  std::vector<pollfd> all_;
};

/// An address of IPv4 in network byte order, with a port.
inline sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in p{};
  p.sin_family = AF_INET;
  p.sin_addr.s_addr = address;
  p.sin_port = htons(port);
  return p;
}

/// A socket that listens at any free port, which is stored; none if it cannot be opened.
inline socket listen_anywhere(std::uint16_t& port) {
  socket s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in any = socket_address(htonl(INADDR_ANY), 0);
  socklen_t length = sizeof any;
  const auto address = reinterpret_cast<sockaddr*>(&any);
  if (!s || ::bind(s.handle(), address, length) != 0 || ::listen(s.handle(), SOMAXCONN) != 0 ||
      ::getsockname(s.handle(), address, &length) != 0)
    return {};
  port = ntohs(any.sin_port);
  return s;
}

/// At most this many addresses of this machine. The loopback address is last, as it is another
/// machine's own there.
inline std::vector<std::uint32_t> own_addresses(std::size_t most) {
  std::vector<std::uint32_t> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) all = nullptr;
  for (const ifaddrs* a = all; a && out.size() + 1 < most; a = a->ifa_next) {
    if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own;
    std::memcpy(&own, a->ifa_addr, sizeof own);
    if (ntohl(own.sin_addr.s_addr) >> 24 != 127) out.push_back(own.sin_addr.s_addr);
  }
  if (all) ::freeifaddrs(all);
  out.push_back(htonl(INADDR_LOOPBACK));
  return out;
}

/// Connects to an address; none if that takes more than two seconds.
inline socket connect_to(std::uint32_t address, std::uint16_t port) {
  socket s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const sockaddr_in there = socket_address(address, port);
  if (!s) return s;
  if (::connect(s.handle(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
    pollfd one{s.handle(), POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    if (errno != EINPROGRESS || ::poll(&one, 1, 2000) <= 0 ||
        ::getsockopt(s.handle(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
      return {};
  }
  ::fcntl(s.handle(), F_SETFL, 0);  // send() waits
  return s;
}

}  // namespace xla::sys
#endif
