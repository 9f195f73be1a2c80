#include "container/image.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::container {
namespace {

PathKind ask(const std::string& path) {
  if (path == "/img" || path == "/w/rootfs" || path == "/w/old.sif") return PathKind::folder;
  if (path == "/w/a.sif" || path == "/w/a.sqsh" || path == "/w/a.tar" || path == "/w/train.py")
    return PathKind::file;
  if (path == "/w/fifo" || path == "/w/fifo.tar") return PathKind::other;
  return PathKind::missing;
}

void expect(std::string_view text, ImageKind kind, std::string_view place) {
  const auto image = read_image(text, "/w", ask);
  ASSERT_TRUE(image) << text;
  EXPECT_EQ(image->kind, kind) << text;
  EXPECT_EQ(image->place, place) << text;
  EXPECT_EQ(image->text, text);
}

TEST(Image, TellsKindsApart) {
  expect("docker://nvcr.io/nvidia/pytorch:24.01-py3", ImageKind::registry,
         "nvcr.io/nvidia/pytorch:24.01-py3");
  expect("docker://pytorch/pytorch:2.4", ImageKind::registry, "docker.io/pytorch/pytorch:2.4");
  expect("docker://mine:1", ImageKind::registry, "docker.io/library/mine:1");
  expect("docker://localhost/mine", ImageKind::registry, "localhost/mine");
  expect("docker://node:5000/mine", ImageKind::registry, "node:5000/mine");
  expect("/img", ImageKind::folder, "/img");
  expect("rootfs", ImageKind::folder, "/w/rootfs");
  expect("old.sif", ImageKind::folder, "/w/old.sif");  // a sandbox of apptainer
  expect("a.sif", ImageKind::sif, "/w/a.sif");
  expect("a.sqsh", ImageKind::squashfs, "/w/a.sqsh");
  expect("a.tar", ImageKind::archive, "/w/a.tar");
  expect("oci-archive:a.tar", ImageKind::archive, "/w/a.tar");
  expect("docker-archive:/w/a.tar", ImageKind::archive, "/w/a.tar");
  expect("localhost/mine:1", ImageKind::local_name, "localhost/mine:1");
}

TEST(Image, RefusesWhatNoRuntimeTakes) {
  for (const std::string_view text :
       {"docker://", "docker://-v", "docker://a b", "-v", "a b", "", "train.py", "s3://bucket/x"}) {
    const auto image = read_image(text, "/w", ask);
    ASSERT_FALSE(image) << text;
    EXPECT_EQ(code_of(image), Errc::invalid_input) << text;
  }
}

TEST(Image, RefusesFifosAndDevices) {
  for (const std::string_view text : {"fifo", "fifo.tar", "oci-archive:fifo"}) {
    const auto image = read_image(text, "/w", ask);
    ASSERT_FALSE(image) << text;
    EXPECT_EQ(image.error().message,
              "--container " + std::string(text) + " is neither a file nor a folder");
  }
}

TEST(Image, NamesMissingFiles) {
  for (const std::string_view text :
       {"b.sif", "b.tar", "oci-archive:b", "/no/folder", "./rootfs2"}) {
    const auto image = read_image(text, "/w", ask);
    ASSERT_FALSE(image) << text;
    EXPECT_EQ(code_of(image), Errc::not_found) << text;
    EXPECT_NE(image.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::container
