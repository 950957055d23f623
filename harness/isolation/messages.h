// What the harness and a worker process say to each other: JSON messages with their length in front, on a socket.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "reference/names.h"

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

/// Sends one message. False when the other side is gone.
bool send_message(int socket, const Json& message);

enum class Received { message, closed, timeout };
/// Waits for one message; without `limit`, as long as it takes.
Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit);

}  // namespace attest
