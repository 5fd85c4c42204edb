"""What CUDA is answered about an A100."""

import pytest

from va100.spec import a100, mig
from va100.spec.attributes import NODE_ATTRIBUTES, attribute_values, attributes, mig_values


class TestAttributes:
    @pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)
    def test_every_number_is_answered_here_or_by_the_node(self, chip):
        numbers = [row.attribute_id for row in attributes(chip)]
        assert numbers == sorted(set(numbers))
        assert set(numbers) | NODE_ATTRIBUTES == set(range(1, 146))
        assert not set(numbers) & NODE_ATTRIBUTES

    def test_names_are_unique(self):
        names = [row.name for row in attributes(a100.A100_SXM4_80GB)]
        assert len(names) == len(set(names))

    def test_models_differ_where_they_should(self):
        first, second = (attribute_values(chip) for chip in a100.MODELS[2:])
        assert {n for n in first if first[n] != second[n]} == {36, 139, 140}
        assert (first[36], second[36]) == (1215000, 1593000)

    def test_figures_of_real_dumps(self):
        values = attribute_values(a100.A100_SXM4_80GB)
        seen = {
            8: 49152,
            97: 166912,
            81: 167936,
            111: 1024,
            38: 41943040,
            40: 3,
            87: 2,
            13: 1410000,
        }
        assert {number: values[number] for number in seen} == seen


class TestMig:
    def test_a_real_1g_10gb_instance(self):
        profile = next(p for p in mig.PROFILES_80GB if p.name == "1g.10gb")
        values = attribute_values(a100.A100_PCIE_80GB, profile)
        assert (values[16], values[37], values[38], values[40]) == (14, 640, 5242880, 1)
        assert profile.memory_bytes == 10_200_547_328
        assert values[13] == 1410000

    def test_a_compute_instance_smaller_than_its_gpu_instance(self):
        profile = next(p for p in mig.PROFILES_40GB if p.name == "3g.20gb")
        assert mig_values(a100.A100_SXM4_40GB, profile, 1)[16] == 14
        assert mig_values(a100.A100_SXM4_40GB, profile, 3)[37] == 2560
