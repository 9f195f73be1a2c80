// Moves every image of a batch by up to one pixel each way: more digits to learn from than there
// are.
#include <torch/extension.h>

#include <random>

// images: float32, (batch, 1, height, width). seed: the same one moves them the same way.
// Returns a new tensor; what comes in from outside the image is 0.
torch::Tensor jitter(const torch::Tensor& images, std::int64_t seed) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 1 && images.dtype() == torch::kFloat32,
              "images must be float32 of shape (batch, 1, height, width)");
  torch::Tensor moved = torch::zeros_like(images);
  const auto from = images.accessor<float, 4>();
  auto to = moved.accessor<float, 4>();
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::int64_t image = 0; image < images.size(0); ++image) {
    const auto right = static_cast<std::int64_t>(random() % 3) - 1;
    const auto down = static_cast<std::int64_t>(random() % 3) - 1;
    for (std::int64_t y = 0; y < images.size(2); ++y)
      for (std::int64_t x = 0; x < images.size(3); ++x) {
        const std::int64_t old_y = y - down;
        const std::int64_t old_x = x - right;
        if (old_y >= 0 && old_y < images.size(2) && old_x >= 0 && old_x < images.size(3))
          to[image][0][y][x] = from[image][0][old_y][old_x];
      }
  }
  return moved;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("jitter", &jitter, "Every image moved by up to one pixel each way",
             pybind11::arg("images"), pybind11::arg("seed"));
}
