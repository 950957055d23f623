// Messages between the harness and a worker: whole, in order, and none from one that writes nonsense.
#include "harness/backends/isolation/messages.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace attest {
namespace {

using namespace std::chrono_literals;

class Messages : public testing::Test {
 protected:
  Messages() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~Messages() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  int ends_[2];
};

TEST_F(Messages, ArriveInOrderAndWhole) {
  const Json large = {{"text", std::string(100'000, 'x')}};  // more than a socket holds at once
  std::thread sender([&] {
    EXPECT_TRUE(send_message(ends_[0], {{"n", 1}}));
    EXPECT_TRUE(send_message(ends_[0], large));
  });
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::message);
  EXPECT_EQ(got, Json({{"n", 1}}));
  EXPECT_EQ(receive_message(ends_[1], got, std::nullopt), Received::message);
  EXPECT_EQ(got, large);
  sender.join();
}

TEST_F(Messages, SayWhenNothingComes) {
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 20ms), Received::timeout);
  shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
  EXPECT_FALSE(send_message(ends_[0], {{"n", 1}}));
}

TEST_F(Messages, OfAWorkerThatWritesNonsenseCloseIt) {
  const std::uint64_t absurd = ~std::uint64_t{0};
  ASSERT_EQ(write(ends_[0], &absurd, sizeof absurd), static_cast<ssize_t>(sizeof absurd));
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
  const std::uint64_t three = 3;
  ASSERT_EQ(write(ends_[0], &three, sizeof three), static_cast<ssize_t>(sizeof three));
  ASSERT_EQ(write(ends_[0], "{\"a", 3), 3);
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
}

TEST_F(Messages, AreNoDeeperThanOurs) {
  const auto nested = [](int depth) {
    Json message;
    for (int n = 0; n < depth; ++n) message = {{"a", message}};
    return message;
  };
  Json got;
  EXPECT_TRUE(send_message(ends_[0], nested(20)));
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::message);
  std::thread sender([&] {
    const std::string text = "{\"a\":" + std::string(1'000'000, '[');
    const std::uint64_t length = text.size();
    EXPECT_EQ(write(ends_[0], &length, sizeof length), static_cast<ssize_t>(sizeof length));
    EXPECT_EQ(write(ends_[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  });
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
  sender.join();
}

TEST(Message, ThatLacksSomethingIsBad) {
  const Json message = {{"name", 7}};
  EXPECT_EQ(read_message([&] { return message.at("name").get<int>(); }), 7);
  EXPECT_THROW(read_message([&] { return message.at("name").get<std::string>(); }), BadMessage);
  EXPECT_THROW(read_message([&] { return message.at("status").get<int>(); }), BadMessage);
}

TEST_F(Messages, AreObjects) {
  const std::uint64_t one = 1;
  ASSERT_EQ(write(ends_[0], &one, sizeof one), static_cast<ssize_t>(sizeof one));
  ASSERT_EQ(write(ends_[0], "5", 1), 1);
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
}

TEST_F(Messages, AreNotWaitedForWhenNobodyIsThere) {
  // Another process may hold the other end: the socket itself says nothing of a worker that is gone.
  int glances = 0;
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, std::nullopt, [&] { return ++glances < 3; }), Received::closed);
  EXPECT_EQ(glances, 3);
  // What it had sent before it went still arrives.
  ASSERT_TRUE(send_message(ends_[0], {{"n", 2}}));
  EXPECT_EQ(receive_message(ends_[1], got, std::nullopt, [] { return false; }), Received::message);
}

TEST_F(Messages, ThatNobodyReadsAreGivenUp) {
  const Json large = {{"text", std::string(10'000'000, 'x')}};
  EXPECT_FALSE(send_message(ends_[0], large, 50ms));
}

}  // namespace
}  // namespace attest
