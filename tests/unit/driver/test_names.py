"""Kernel names, against what a C++ toolchain's own demangler says of the same names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.driver.names import short_name


class TestShortName:
    @pytest.mark.parametrize(
        ("mangled", "short"),
        [
            ("saxpy", "saxpy"),
            ("_Z10vector_addPKfS0_Pfi", "vector_add"),
            ("_ZL5quietPf", "quiet"),
            ("_Z6reduceILi256EfEvPKT0_PS0_", "reduce<256, float>"),
            ("_Z6reduceILin3EdEvPKT0_PS0_", "reduce<-3, double>"),
            ("_Z5modedIL4Mode1EEvv", "moded<(Mode)1>"),
            ("_Z4packIJiPfEEvDpT_", "pack<int, float*>"),
            ("_Z4litsILl5ELj7EEvv", "lits<5l, 7u>"),
            (
                "_ZN3app4pairINS_4deep1VINS1_1SEEES3_EEvT_T0_",
                "app::pair<app::deep::V<app::deep::S>, app::deep::S>",
            ),
            (
                "_ZN3app4pairIPKfNS_4deep1VIS2_EEEEvT_T0_",
                "app::pair<float const*, app::deep::V<float const*>>",
            ),
            ("_ZN3app4pairISt4pairIifEiEEvT_T0_", "app::pair<std::pair<int, float>, int>"),
            ("_ZN3app4deep5plainEPNS0_1SES1_", "app::deep::plain"),
            ("_ZN3app4deep1kI6__halfLb1EEEvPT_S4_", "app::deep::k<__half, true>"),
            ("_ZN3app4deep1kINS0_1SELb0EEEvPT_S4_", "app::deep::k<app::deep::S, false>"),
            ("_ZN36_GLOBAL__N__d9a1e8ee_4_d_cu_da19cbf86hiddenEi", "(anonymous)::hidden"),
            # an expression and a lambda are beyond it: the plain part is kept
            ("_Z1fIXaaLb1ELb0EEEvv", "f"),
            ("_ZN1a1bIZ4mainEUlvE_EEvT_", "a::b"),
        ],
    )
    def test_spelled(self, mangled, short):
        assert short_name(mangled) == short

    @pytest.mark.parametrize("text", ["", "_Z", "_Zx", "_Z9short", "_ZN", "_ZNE", "_ZNIiEE"])
    def test_wrongly_mangled_stays(self, text):
        assert short_name(text) == text

    @given(st.text(alphabet="_ZNIELPKSTtisfdjb0123456789abc", max_size=40))
    def test_no_text_breaks_it(self, text):
        assert isinstance(short_name("_Z" + text), str)

    def test_deep_nesting_is_given_up(self):
        assert short_name("_Z1fI" + "P" * 5000 + "iEvv") == "f"
