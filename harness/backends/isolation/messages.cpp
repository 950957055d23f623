#include "harness/backends/isolation/messages.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace attest {
namespace {

constexpr std::size_t kMaxBytes = 64u << 20;
constexpr int kMaxDepth = 64;  ///< of what a message has within another; copies of one are made by recursion

using Moment = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds kBetweenGlances{20};

std::optional<Moment> end_of(std::optional<std::chrono::milliseconds> limit) {
  if (!limit) return std::nullopt;
  return std::chrono::steady_clock::now() + *limit;
}

/// For `events`, until `end`. A worker may keep its end of the socket without reading or writing it, or leave it to a
/// process of its own, so that waiting for the socket alone could last for ever.
Received wait_for(int socket, short events, std::optional<Moment> end, const Glance& glance) {
  for (bool there = true;;) {
    std::int64_t wait = -1;
    if (glance) wait = there ? kBetweenGlances.count() : 0;
    if (end) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now()).count();
      if (left <= 0) return Received::timeout;
      wait = std::min(wait < 0 ? std::int64_t{3'600'000} : wait, left + 1);
    }
    pollfd ready{socket, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(wait));
    if (count > 0) return Received::message;
    if (count < 0 && errno != EINTR) return Received::closed;
    if (!there) return Received::closed;  // gone before this last look
    if (glance) there = glance();
  }
}

bool send_all(int socket, const void* data, std::size_t bytes, std::optional<Moment> end) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    if (end && wait_for(socket, POLLOUT, end, {}) != Received::message) return false;
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL | (end ? MSG_DONTWAIT : 0));
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

Received receive_all(int socket, void* data, std::size_t bytes, std::optional<Moment> end, const Glance& glance) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    if (const Received ready = wait_for(socket, POLLIN, end, glance); ready != Received::message) return ready;
    const ssize_t got = recv(socket, to, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Received::closed;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

/// Discarded where it is none.
Json parsed(const std::string& text) {
  struct TooDeep {};
  try {
    return Json::parse(
        text,
        [](int depth, Json::parse_event_t, const Json&) {
          if (depth > kMaxDepth) throw TooDeep();
          return true;
        },
        false);
  } catch (const TooDeep&) {
    return Json(Json::value_t::discarded);
  }
}

}  // namespace

bool send_message(int socket, const Json& message, std::optional<std::chrono::milliseconds> limit) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t length = text.size();
  const std::optional<Moment> end = end_of(limit);
  return send_all(socket, &length, sizeof length, end) && send_all(socket, text.data(), text.size(), end);
}

Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit,
                         const Glance& glance) {
  const std::optional<Moment> end = end_of(limit);
  std::uint64_t length = 0;
  Received result = receive_all(socket, &length, sizeof length, end, glance);
  if (result != Received::message) return result;
  if (length > kMaxBytes) return Received::closed;  // a worker that writes over its memory may say anything
  std::string text(length, '\0');
  result = receive_all(socket, text.data(), text.size(), end, glance);
  if (result != Received::message) return result;
  message = parsed(text);
  return message.is_object() ? Received::message : Received::closed;
}

}  // namespace attest
