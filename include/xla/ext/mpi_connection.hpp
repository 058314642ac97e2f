// SPDX-License-Identifier: Apache-2.0
#pragma once

// Connections between the processes of a world, which detect that a process has died. Elements
// travel by MPI; mpi_liveness.hpp decides what a broken connection means.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "xla/base/system/socket.hpp"

namespace xla::mpi::detail {

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
  explicit connection(sys::socket socket) : socket_(std::move(socket)) { socket_.keep_alive(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  const sys::socket& socket() const noexcept { return socket_; }

  /// The receiving side finds out that the other side is gone.
  void send_notice(notice n, const std::string& text = {}) const noexcept {
    n.bytes = text.size();
    socket_.send(&n, sizeof n);
    socket_.send(text.data(), text.size());
  }

  /// Receives what has arrived; false at the connection's end.
  bool take() { return socket_.receive(inbox_); }
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
      if (!socket_.readable(milliseconds) || !take()) return false;
    return true;
  }

 private:
  sys::socket socket_;
  std::string inbox_;
};

/// The address of a process, and a secret that outsiders do not know.
struct endpoint {
  std::uint64_t word = 0;
  std::uint16_t port = 0;
  std::uint16_t count = 0;
  std::array<std::uint32_t, 14> addresses{};
};

/// A socket that listens at any free port, and its addresses; none if it cannot be opened.
inline sys::socket listen_anywhere(endpoint& c) {
  auto socket = sys::listen_anywhere(c.port);
  if (!socket) return socket;
  const auto addresses = sys::own_addresses(c.addresses.size());
  std::copy(addresses.begin(), addresses.end(), c.addresses.begin());
  c.count = static_cast<std::uint16_t>(addresses.size());
  return socket;
}

}  // namespace xla::mpi::detail
