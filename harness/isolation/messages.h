// What the harness and a worker process say to each other: JSON messages with their length in front, on a socket.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

namespace attest {

using Json = nlohmann::json;

/// Sends one message. False when the other side is gone.
bool send_message(int socket, const Json& message);

enum class Received { message, closed, timeout };
/// Waits for one message; without `limit`, as long as it takes.
Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit);

}  // namespace attest
