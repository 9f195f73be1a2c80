#include "io/own_stream.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::io {
namespace {

TEST(OwnStream, WhatComesInAFilesPlaceIsWrittenTo) {
  std::string folder = testing::TempDir() + "own_stream.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Fd given(open((folder + "/first").c_str(), O_WRONLY | O_CREAT, 0600));
  const Fd second(open((folder + "/second").c_str(), O_WRONLY | O_CREAT, 0600));
  const auto stream = OwnStream::open(given.get(), OwnStream::Way::write);
  ASSERT_TRUE(stream);
  EXPECT_FALSE(stream->pollable());
  ASSERT_EQ(write(stream->fd(), "a", 1), 1);
  ASSERT_EQ(dup2(second.get(), given.get()), given.get());
  ASSERT_EQ(write(stream->fd(), "b", 1), 1);
  EXPECT_EQ(*read_file(folder + "/first"), "a");
  EXPECT_EQ(*read_file(folder + "/second"), "b");
  std::filesystem::remove_all(folder);
}

TEST(OwnStream, TheFlagsOfASharedPipeStayAsTheyAre) {
  auto pipe = make_pipe().value();
  const auto stream = OwnStream::open(pipe.write.get(), OwnStream::Way::write);
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->pollable());
  EXPECT_EQ(fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(stream->fd(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace lockstep::io
