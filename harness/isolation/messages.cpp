#include "harness/isolation/messages.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace attest {
namespace {

constexpr std::size_t kMaxBytes = 64u << 20;

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

Received receive_all(int socket, void* data, std::size_t bytes,
                     std::optional<std::chrono::steady_clock::time_point> end) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    int wait = -1;
    if (end) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Received::timeout;
      wait = static_cast<int>(std::min<std::int64_t>(left.count() + 1, 3'600'000));
    }
    pollfd ready{socket, POLLIN, 0};
    const int count = poll(&ready, 1, wait);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) continue;
    const ssize_t got = recv(socket, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

}  // namespace

bool send_message(int socket, const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t length = text.size();
  return send_all(socket, &length, sizeof length) && send_all(socket, text.data(), text.size());
}

Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit) {
  std::optional<std::chrono::steady_clock::time_point> end;
  if (limit) end = std::chrono::steady_clock::now() + *limit;
  std::uint64_t length = 0;
  Received result = receive_all(socket, &length, sizeof length, end);
  if (result != Received::message) return result;
  if (length > kMaxBytes) return Received::closed;  // a worker that writes over its memory may say anything
  std::string text(length, '\0');
  result = receive_all(socket, text.data(), text.size(), end);
  if (result != Received::message) return result;
  message = Json::parse(text, nullptr, false);
  return message.is_discarded() ? Received::closed : Received::message;
}

}  // namespace attest
