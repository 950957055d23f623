// What the harness and a worker process say to each other: JSON messages with their length in front, on a socket.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "reference/base/names.h"

namespace attest {

using Json = nlohmann::json;

/// Enumerations go by their names.
template <NamedEnum E>
void to_json(Json& json, E value) {
  json = name_of(value);
}
template <NamedEnum E>
void from_json(const Json& json, E& value) {
  const std::optional<E> found = value_named<E>(json.get<std::string>());
  if (!found) throw std::invalid_argument("unknown name in a message: " + json.dump());
  value = *found;
}

/// A message lacks what it should have, or has something else there: whoever wrote it is not our code.
struct BadMessage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What `read` takes from a message. Throws BadMessage.
template <class Read>
auto read_message(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const Json::exception& error) {
    throw BadMessage(error.what());
  } catch (const std::invalid_argument& error) {
    throw BadMessage(error.what());
  }
}

/// Called again and again while nothing comes: whether there is still somebody to wait for. May throw.
using Glance = std::function<bool()>;

enum class Received { message, closed, timeout };

/// Sends one message. False when the other side is gone; with a limit, also when it took nothing for so long.
bool send_message(int socket, const Json& message, std::optional<std::chrono::milliseconds> limit = std::nullopt);

/// Waits for one message; without `limit`, as long as it takes. What is no message of ours, or nested deeper than any
/// of them, counts as closed.
Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit,
                         const Glance& glance = {});

}  // namespace attest
