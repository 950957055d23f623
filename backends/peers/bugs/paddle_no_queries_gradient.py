"""PaddlePaddle on processors: the gradient of `scaled_dot_product_attention` without queries is an error where the
query needs none."""

import paddle
from paddle.nn.functional import scaled_dot_product_attention


def outcome(of_query: bool) -> str:
    query, key, value = (paddle.ones([1, length, 1, 2]) for length in (0, 3, 3))
    query.stop_gradient, value.stop_gradient = not of_query, False
    try:
        scaled_dot_product_attention(query, key, value).sum().backward()
    except ValueError as error:
        return error.args[0].strip().splitlines()[-2].strip()
    return str(value.grad.flatten().tolist())


got, with_query = outcome(False), outcome(True)
print(f"PaddlePaddle {paddle.__version__}: got {got}; {with_query} where the query needs its gradient, too; expected that")
raise SystemExit(got != with_query)
