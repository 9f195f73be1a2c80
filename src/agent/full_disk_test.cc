#include "agent/full_disk.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

struct statvfs disk_with(unsigned long free, unsigned long available, unsigned long files = 9) {
  struct statvfs disk {};
  disk.f_frsize = 4096;
  disk.f_blocks = 1000;
  disk.f_bfree = free;
  disk.f_bavail = available;
  disk.f_files = 10;
  disk.f_ffree = disk.f_favail = files;
  return disk;
}

TEST(FullDisk, IsNamed) {
  EXPECT_EQ(full_disk_note(disk_with(16, 16), true, "/l"), std::nullopt);
  const std::string space = "the disk of the log directory /l is full: no space is left";
  EXPECT_EQ(full_disk_note(disk_with(15, 0), true, "/l"), space);
  EXPECT_EQ(full_disk_note(disk_with(50, 50, 0), true, "/l"),
            "the disk of the log directory /l is full: no inodes are left");
  EXPECT_EQ(full_disk_note(disk_with(50, 0), true, "/l"), std::nullopt);
  EXPECT_EQ(full_disk_note(disk_with(50, 0), false, "/l"), space) << "the rest is kept for root";
}

TEST(FullDisk, WhatCountsNothingIsNotFull) {
  struct statvfs disk {};
  EXPECT_EQ(full_disk_note(disk, true, "/l"), std::nullopt);
  disk = disk_with(50, 50, 0);
  disk.f_files = 0;
  EXPECT_EQ(full_disk_note(disk, true, "/l"), std::nullopt);
  EXPECT_EQ(full_disk_note("/there/is/none"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::agent
