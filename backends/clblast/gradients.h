// Gradients as products of matrices: the host's side of gradients.cl.
//
// Scores are multiplied once more and become exp(s - lse), also behind a forward pass.
#pragma once

#include <initializer_list>
#include <utility>

#include "backends/clblast/products.h"
#include "backends/support/opencl/call.h"
#include "backends/support/opencl/gradients.h"

namespace attest {

template <class Real>
class ClblastGradients {
 public:
  /// `program` holds gradients.cl. The others outlive this; `forward` has the inputs of attention, and o and lse when
  /// gradients run.
  ClblastGradients(support::DeviceCall& forward, support::OpenClDevice& device, const cl::Program& program,
                   const ProductSizes& sizes, const ProductBuffers& buffers, Products<Real>& products)
      : device_(device),
        forward_(forward),
        common_(forward, device, program),
        sizes_(sizes),
        buffers_(buffers),
        products_(products),
        pack_rows_(program, "pack_rows"),
        pack_keys_(program, "pack_keys"),
        weigh_rows_(program, "weigh_rows"),
        add_flagged_rows_(program, "add_flagged_rows") {}

  /// After forward's upload.
  void upload(const Inputs& inputs) {
    common_.upload(inputs);
    const auto set = [](cl::Kernel& kernel, cl_uint n, std::initializer_list<const cl::Buffer*> buffers) {
      for (const cl::Buffer* buffer : buffers) kernel.setArg(n++, *buffer);
      return n;
    };
    const ProductBuffers& on = buffers_;
    set(pack_rows_, common_.set_common(pack_rows_), {&on.queries, &on.dout, &on.row_flags, &on.any_flags});
    const cl_uint n =
        set(pack_keys_, forward_.set_common(pack_keys_), {&on.keys, &on.values, &on.key_flags, &on.any_flags});
    pack_keys_.setArg(n, cl_int{1});
    set(weigh_rows_, common_.set_common(weigh_rows_),
        {&on.scores, &on.score_gradients, &on.key_flags, &on.row_flags, &on.any_flags});
    set(add_flagged_rows_, common_.set_common(add_flagged_rows_, {TensorId::dv}),
        {&on.scores, &on.row_flags, &on.any_flags});
  }

  /// Enqueues everything; forward's o and lse lie before it in the queue.
  void enqueue() {
    const ProductSizes& n = sizes_;
    common_.enqueue_rows();
    if (n.heads * n.rows * n.keys == 0) {
      for (const auto& [id, numbers] :
           {std::pair(TensorId::dq, n.rows * n.key_dim), std::pair(TensorId::dk, n.keys * n.key_dim),
            std::pair(TensorId::dv, n.keys * n.value_dim)}) {
        const std::size_t bytes = as_size(n.heads * numbers) * sizeof(Real);
        if (bytes > 0) device_.queue().enqueueFillBuffer(common_.result(id), Real{0}, 0, bytes);
      }
    } else {
      pack();
      multiply();
    }
    common_.enqueue_rest();
  }

  void download(const Outputs& outputs) const { common_.download(outputs); }

 private:
  void pack() {
    device_.queue().enqueueFillBuffer(buffers_.any_flags, cl_int{0}, 0, 2 * sizeof(cl_int));
    device_.enqueue_rows(pack_rows_, as_size(sizes_.heads * sizes_.row_pitch));
    device_.enqueue_rows(pack_keys_, as_size(sizes_.heads * sizes_.key_pitch / kGemmDepth));
  }

  void multiply() {
    const ProductSizes& n = sizes_;
    const Matrices queries{buffers_.queries(), n.row_pitch, n.key_dim_pitch};
    const Matrices keys{buffers_.keys(), n.key_dim_pitch, n.key_pitch};
    const Matrices values{buffers_.values(), n.key_pitch, n.value_dim_pitch};
    const Matrices dout{buffers_.dout(), n.row_pitch, n.value_dim_pitch};
    const Matrices weights{buffers_.scores(), n.row_pitch, n.key_pitch};
    const Matrices gradients{buffers_.score_gradients(), n.row_pitch, n.key_pitch};
    const Matrices dq{common_.result(TensorId::dq)(), n.rows, n.key_dim};
    const Matrices dk{common_.result(TensorId::dk)(), n.keys, n.key_dim};
    const Matrices dv{common_.result(TensorId::dv)(), n.keys, n.value_dim};
    const auto scale = static_cast<Real>(forward_.problem().scale_value());

    products_.begin();
    products_.multiply(n.row_pitch, n.key_pitch, n.key_dim_pitch, scale, queries, keys, weights, "q * k");
    products_.multiply(n.row_pitch, n.key_pitch, n.value_dim_pitch, Real{1}, dout, values.transposed(), gradients,
                       "do * v");
    device_.enqueue_rows(weigh_rows_, as_size(n.heads * n.rows));
    products_.multiply(n.rows, n.key_dim, n.key_pitch, scale, gradients, keys.transposed(), dq, "dq");
    products_.multiply(n.keys, n.key_dim, n.row_pitch, scale, gradients.transposed(), queries, dk, "dk");
    products_.multiply(n.keys, n.value_dim, n.row_pitch, Real{1}, weights.transposed(), dout, dv, "dv");
    device_.enqueue_rows(add_flagged_rows_, as_size(n.heads * n.keys));
  }

  support::OpenClDevice& device_;
  support::DeviceCall& forward_;
  support::DeviceGradients common_;
  const ProductSizes& sizes_;
  const ProductBuffers& buffers_;
  Products<Real>& products_;
  cl::Kernel pack_rows_, pack_keys_, weigh_rows_, add_flagged_rows_;
};

}  // namespace attest
